"""XLA:CPU merges equal broadcasts, and stores the result if a library kernel and another kernel read it."""

from __future__ import annotations

from typing import Any

import pytest

from recompute.analysis.memory.xla.memory import xla_timeline
from recompute.analysis.step.order import functions_of
from recompute.mlir_io.parser import parse_module
from recompute.transforms.inline import inline

from .fused import Fused, fused, reads, stored

TYPES = """
!m = tensor<64x64xf32>
!v = tensor<64xf32>
!s = tensor<f32>
"""
SUM = """
  %zero = stablehlo.constant dense<0.0> : !s
  %d = stablehlo.divide %y, %w2 : !m
  %r = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [1] : (!m, !s) -> !v
  %c = stablehlo.broadcast_in_dim %r, dims = [1] : (!v) -> !m
  %z = stablehlo.select %p, %n, %c : tensor<64x64xi1>, !m
"""
FORWARD = "%e = stablehlo.divide %x, %w1 : !m  %n = stablehlo.sine %e : !m"


def wide(result: str, operand: str, dimension: int = 0) -> str:
    return f"  %{result} = stablehlo.broadcast_in_dim %{operand}, dims = [{dimension}] : (!v) -> !m\n"


def step(first: str, second: str, forward: str = FORWARD) -> Fused:
    """Return a step that reads %w1 in a forward division, and %w2 in a division before a sum."""
    return fused("%x: !m, %y: !m, %v: !v, %u: !v, %p: tensor<64x64xi1>", first + forward + second + SUM, "!m", TYPES)


def test_equal_broadcasts_share_one_stored_value() -> None:
    results = step(wide("w1", "v"), wide("w2", "v"))
    assert "w1" in stored(results) and "w2" not in stored(results)
    assert "w1" in reads(results, "c")


def test_broadcasts_of_aliased_operands_share_a_value() -> None:
    again = (
        "  %t = stablehlo.reshape %v : (!v) -> tensor<8x8xf32>\n  %o = stablehlo.reshape %t : (tensor<8x8xf32>) -> !v\n"
    )
    assert "w1" in reads(step(wide("w1", "v"), again + wide("w2", "o")), "c")


@pytest.mark.parametrize("second", [wide("w2", "u"), wide("w2", "v", 1)], ids=["another operand", "another dimension"])
def test_unequal_broadcasts_are_not_stored(second: str) -> None:
    results = step(wide("w1", "v"), second)
    assert {"w1", "w2"}.isdisjoint(stored(results))


TENTH = "  %k = stablehlo.constant dense<0.1> : !s  %t = stablehlo.broadcast_in_dim %k, dims = [] : (!s) -> !m\n"


@pytest.mark.parametrize(
    ("scale", "is_one"),
    [
        (TENTH + "  %n = stablehlo.divide %e, %t : !m\n", False),
        (TENTH + "  %n = stablehlo.multiply %e, %t : !m\n", False),
        (TENTH + "  %n = stablehlo.add %e, %t : !m\n", True),
        ("  %n = stablehlo.multiply %e, %y : !m\n", True),
    ],
    ids=["divided", "multiplied", "added", "by another matrix"],
)
def test_fused_constant_makes_broadcasts_distinct(scale: str, is_one: bool) -> None:
    results = step(wide("w1", "v"), wide("w2", "v"), "  %e = stablehlo.divide %x, %w1 : !m\n" + scale)
    assert ("w1" in stored(results)) == is_one


@pytest.mark.parametrize("scaled", [False, True])
def test_model_is_close_to_installed_xla(scaled: bool) -> None:
    """The model agrees with the installed XLA on a softmax times a mask that is equal for all rows, as in dropout."""
    jax: Any = pytest.importorskip("jax", reason="the test compiles with JAX")
    jnp, shape = jax.numpy, (8, 256, 256)

    def loss(weights: Any, x: Any, mask: Any) -> Any:
        for w in weights:
            y = jax.nn.softmax(x @ w)
            x = jnp.sin((y / 0.1 if scaled else y) * mask)
        return jnp.mean(x)

    like = jax.ShapeDtypeStruct
    arguments = [like((256, 256), "float32")] * 4, like(shape, "float32"), like(shape[1:], "float32")
    lowered = jax.jit(jax.grad(loss)).lower(*arguments)
    allocated = lowered.compile().memory_analysis().temp_size_in_bytes
    module = parse_module(lowered.as_text(debug_info=True))
    inline(module)
    assert xla_timeline(functions_of(module)[0]).peak_bytes == pytest.approx(allocated, rel=0.15)
