"""Values are offloaded to the host in JAX's form for GPU and TPU; on CPU a remark states that this has no effect."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import recompute
from recompute.dialects.names import Names
from recompute.dialects.placements import is_from_host, is_placement, is_to_host
from recompute.frontends.jax.lowering.rewrite_lowered import crossing
from recompute.mlir_io.parser import parse_module
from recompute.test.unit.frontends.jax.steps import batch, far_apart, jax, jnp, mlp, temporaries, weights

SPACE = jax.memory.Space


def moves(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if is_placement(op)]


def attributes_of(op: Operation) -> dict[str, str]:
    """Return the attributes of an operation, except those of recompute."""
    named = {**op.attributes, **op.properties}
    return {name: str(value) for name, value in named.items() if not name.startswith(Names.PREFIX)}


def moved_to_host_and_back(x: Any) -> Any:
    return jnp.cos(x) * jax.device_put(jax.device_put(jnp.sin(x), SPACE.Host), SPACE.Device)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_moves_have_the_form_of_jax(platform: str) -> None:
    exported = jax.export.export(jax.jit(moved_to_host_and_back), platforms=[platform])(jnp.ones((64, 64)))
    theirs = moves(parse_module(exported.mlir_module(), "theirs"))
    assert [is_to_host(op) for op in theirs] == [True, False] and is_from_host(theirs[1])
    ours = moves(marked().module)
    assert {str(sorted(attributes_of(op).items())) for op in ours} == {
        str(sorted(attributes_of(op).items())) for op in theirs
    }


def loss(parameters: Any, x: Any) -> Any:
    for at, w in enumerate(parameters):
        with jax.named_scope(f"block{at}"):
            x = jnp.sin(recompute.jax.offload(x @ w))
    return jnp.sum(x**2)


def operands() -> tuple[Any, Any]:
    draw = np.random.default_rng(1)
    return [draw.standard_normal((32, 32), np.float32) for _ in range(5)], draw.standard_normal((64, 32), np.float32)


def marked() -> recompute.Rewritten:
    """Return the step rewritten for a platform with a host."""
    step = jax.value_and_grad(loss)
    lowered = recompute.jax.jit(step).lower(*operands())
    assert lowered.module is not None
    return recompute.rewrite(lowered.module, recompute.RecomputeOptions(offload="marked"))


def test_xla_compiles_offload_moves() -> None:
    """XLA:CPU compiles the moves and drops them; the results equal those of the plain step bit for bit."""
    result = marked()
    assert result.proof is not None and result.proof.proved and len(moves(result.module)) == 2 * 5
    plain = recompute.jax.jit(jax.value_and_grad(loss)).lower(*operands())
    moved = crossing.with_module(plain.plain, result.module).compile()
    assert far_apart(moved(*operands()), plain.compile_plain()(*operands())) == []


def remarks(first: Any) -> Iterable[str]:
    return [str(remark) for remark in first.remarks]


@pytest.mark.slow
def test_offload_on_cpu_is_reported_as_ineffective() -> None:
    several: Any = ({"offload": "marked"}, {"offload": "25GB/s", "cost": "roofline(cpu)", "budget": 0.6})
    for options in several:
        lowered = recompute.jax.jit(mlp().step, **options).lower(weights(5, 16, 64), batch(512, 16))
        assert any("has no effect: on cpu, device memory is host memory" in remark for remark in remarks(lowered))
        assert "annotate_device_placement" not in lowered.as_text()
        assert temporaries(lowered.compile()) > 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"offload": True}, TypeError, "offload must be a str, not bool"),
        ({"offload": "fast"}, ValueError, "offload must be marked, auto, or a speed such as 25GB/s, not 'fast'"),
        ({"offload": "auto"}, ValueError, "for example cost=roofline"),
        ({"cost": 3}, TypeError, "cost must be a str, not int"),
    ],
)
def test_invalid_offload_options_are_rejected(options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        recompute.jax.jit(mlp().step, **options)
