"""Hand-written steps in arith, math, linalg, tensor and scf, through the whole pipeline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from recompute.analysis.memory.timeline import timeline
from recompute.analysis.step.order import functions_of
from recompute.dialects.names import Names
from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.inputs import random_inputs
from recompute.interpreters.kernels.arrays import Array
from recompute.interpreters.meter import meter
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "mlir"
NAMES = sorted(path.name for path in FOLDER.glob("*.mlir"))


def load(name: str) -> ModuleOp:
    return parse_module((FOLDER / name).read_text(), name)


def run(module: ModuleOp, *inputs: Any) -> tuple[Array, ...]:
    return execute(function_named(module), inputs)


@pytest.mark.parametrize("target", ["none", "stablehlo"])
@pytest.mark.parametrize("name", NAMES)
def test_result_is_proved_and_equal_and_the_peak_falls(name: str, target: str) -> None:
    before, after = load(name), load(name)
    assert rewrite_in_place(after, RecomputeOptions(target=target)).copies > 0
    assert prove(before, after)
    inputs = random_inputs(function_named(before), seed=3)
    assert compare(before, after, inputs).equal
    peaks = [timeline(functions_of(module)[0]).peak_bytes for module in (before, after)]
    assert peaks[1] < 0.85 * peaks[0]
    for module in (before, after):
        function = function_named(module)
        assert meter(function, inputs)[1].live_bytes == timeline(function).live_bytes


@pytest.mark.parametrize("name", NAMES)
def test_printed_result_round_trips(name: str) -> None:
    """The result is printed and read without loss, although xDSL drops attributes of some operations."""
    module = load(name)
    rewrite_in_place(module)
    text = print_module(module)
    assert print_module(parse_module(text, name)) == text
    assert text.count("recompute.copy = 1") == sum(Names.COPY in op.attributes for op in module.walk())


def drop_last(op: Operation) -> None:
    """Make the loop yield its own argument in place of the computed value."""
    last = op.regions[0].block.last_op
    assert last is not None
    last.operands[0] = op.regions[0].block.args[1]


def swap(op: Operation) -> None:
    first, second = (region.block.last_op for region in op.regions)
    assert first is not None and second is not None
    first.operands[0], second.operands[0] = second.operands[0], first.operands[0]


def reuse_the_body(op: Operation) -> None:
    (sine,) = (inner for inner in op.regions[0].block.ops if inner.name == "math.sin")
    sine.operands[0] = op.regions[0].block.args[2]


@pytest.mark.parametrize(
    ("kind", "change"),
    [("scf.for", drop_last), ("scf.for", reuse_the_body), ("scf.if", swap)],
    ids=lambda item: getattr(item, "__name__", item),
)
def test_copy_with_another_body_is_not_proved(kind: str, change: Callable[[Operation], None]) -> None:
    before, after = load("loop.mlir"), load("loop.mlir")
    rewrite_in_place(after, RecomputeOptions(target="none"))
    copy = next(op for op in after.walk() if op.name == kind and Names.COPY in op.attributes)
    change(copy)
    assert not prove(before, after).proved
    inputs = random_inputs(function_named(before), seed=3)
    inputs[1] = np.asarray(True)
    assert not compare(before, after, inputs).equal


def test_perceptron_gradients_equal_numpy() -> None:
    generator = np.random.default_rng(0)
    shapes = ((64, 16), (16, 32), (32, 32), (32, 8), (64, 8))
    x, w1, w2, w3, t = (0.3 * generator.normal(size=shape) for shape in shapes)
    h1 = np.tanh(x @ w1)
    h2 = np.tanh(h1 @ w2)
    error = h2 @ w3 - t
    g2 = error @ w3.T * (1 - h2**2)
    g1 = g2 @ w2.T * (1 - h1**2)
    expected = (error**2).sum() / 2, x.T @ g1, h1.T @ g2, h2.T @ error
    results = run(load("mlp.mlir"), *(item.astype(np.float32) for item in (x, w1, w2, w3, t)))
    for first, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(first, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("flag", [False, True])
def test_loop_gradient_equals_finite_differences(flag: bool) -> None:
    """The gradient equals finite differences, which do not depend on how it is computed."""
    x = np.linspace(0.5, 3, 256, dtype=np.float32)
    first, step = np.ones_like(x), np.float32(5e-3)
    module, which = load("loop.mlir"), np.asarray(flag)
    (low, _), (high, _) = (run(module, value, which, first) for value in (x - step, x + step))
    slope = run(module, x, which, first)[1]
    np.testing.assert_allclose(slope, (high - low) / (2 * step), atol=1e-2 * np.abs(slope).max())
    assert np.abs(slope).max() > 1e-4
