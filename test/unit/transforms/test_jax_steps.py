"""JAX steps with constructs that the examples lack: CHLO, sharding constraints, and random keys."""

# JAX's types say little about lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import pytest

from recompute.analysis.memory.timeline import timeline
from recompute.analysis.step.order import functions_of
from recompute.interpreters.execute_check import compare
from recompute.interpreters.inputs import random_inputs
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.support.operations import name_of
from recompute.test.examples import classified
from recompute.transforms.inline import inline

jax = pytest.importorskip("jax")
jnp = jax.numpy


def lowered() -> str:
    """Return four blocks, each with an exact gelu, noise from a key, and a sharding constraint."""
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))

    def loss(weights: Any, x: Any, key: Any) -> Any:
        for index, weight in enumerate(weights):
            with jax.named_scope(f"block{index}"):
                noise = jax.random.normal(jax.random.fold_in(key, index), x.shape)
                h = jax.nn.gelu(x @ weight + noise, approximate=False)
                x = x + jax.lax.with_sharding_constraint(jnp.square(h), rows)
        return jnp.mean(x)

    weights = [jnp.ones((16, 16)) / 16] * 4
    step = jax.jit(jax.value_and_grad(loss), in_shardings=(None, rows, None))
    return step.lower(weights, jnp.ones((32, 16)), jax.random.key(0)).as_text(debug_info=True)


def test_chlo_and_constraints_are_recomputed() -> None:
    pytest.importorskip("scipy")
    before = parse_module(lowered(), "step.mlir")
    plain, after = before.clone(), before.clone()
    inline(plain)
    assert rewrite_in_place(after, RecomputeOptions(calls=False)).copies > 0
    assert prove(before, after)
    inputs = random_inputs(functions_of(before)[0], 0, "random")
    assert compare(before, after, inputs).equal
    peaks = [timeline(functions_of(item)[0], classified(item)).peak_bytes for item in (plain, after)]
    assert peaks[1] < 0.7 * peaks[0]
    copied = {name_of(op) for op in after.walk() if "recompute.copy" in op.attributes}
    assert {"chlo.erfc", "chlo.square", "chlo.erf_inv"} <= copied
    meshes = [[str(op) for op in item.walk() if name_of(op) == "sdy.mesh"] for item in (before, after)]
    assert meshes[0] == meshes[1] != []
