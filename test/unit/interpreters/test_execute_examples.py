"""Example steps are executed as accurately as by JAX, in exactly the bytes of the static timeline."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recompute.analysis.memory.timeline import timeline
from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.inputs import INPUT_KINDS, InputKind, random_inputs
from recompute.interpreters.kernels.arrays import Array
from recompute.interpreters.meter import meter
from recompute.test.examples import REPRESENTATIVE, SMALL, inlined, original, recomputed
from recompute.test.xdsl_interpreter import make_interpreter
from recompute.transforms.inline import inline

from .programs_in_f64 import in_f64

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
NAMES = [name.removesuffix(".small.mlir") for name in SMALL]
# The others are made of the same operations as these.
BESIDE_JAX = (*REPRESENTATIVE, "unet")


def distance(actual: Array, other: Array) -> float:
    """Return the distance of two arrays relative to the norm of the second."""
    wide = other.astype(np.float64)
    return float(np.linalg.norm(actual.astype(np.float64) - wide) / (np.linalg.norm(wide) or 1.0))


@cache
def by_jax(name: str) -> tuple[Sequence[Array], Sequence[Array]]:
    """Return the inputs and the results of JAX's own step function."""
    import jax

    from recompute.examples.export import BUILDERS
    from recompute.examples.models.step import random_inputs as inputs_of

    step: Any = BUILDERS[name]("small")
    inputs: Any = inputs_of(step)
    arrays = [np.array(leaf) for leaf in jax.tree.leaves(inputs)]
    return arrays, [np.asarray(leaf) for leaf in jax.tree.leaves(step.lower().compile()(*inputs))]


@pytest.mark.slow("gpt-", "gpt]", "unet", "gpt_train")
@pytest.mark.parametrize("name", BESIDE_JAX)
def test_results_are_as_accurate_as_those_of_jax(name: str) -> None:
    inputs, expected = by_jax(name)
    results = execute(function_named(original(f"{name}.small.mlir")), inputs)
    wide = [array.astype(np.float64) if array.dtype == np.float32 else array for array in inputs]
    exact = execute(function_named(in_f64(original(f"{name}.small.mlir"))), wide)
    for first, jax_one, truth in zip(results, expected, exact, strict=True):
        assert (first.dtype, first.shape) == (jax_one.dtype, jax_one.shape)
        if first.dtype != np.float32:
            np.testing.assert_array_equal(first, jax_one)
            continue
        assert truth.dtype == np.float64
        assert distance(first, jax_one) <= 1e-5
        # An error below one unit in the last place says nothing about who is better.
        assert distance(first, truth) <= 4 * max(distance(jax_one, truth), np.finfo(np.float32).eps)


@pytest.mark.slow
def test_bf16_results_are_close_to_those_of_jax() -> None:
    """Results in bf16 agree with JAX to 2 %: XLA rounds less often than the program states."""
    inputs, expected = by_jax("gpt_bf16")
    results = execute(function_named(original("gpt_bf16.small.mlir")), inputs)
    assert all(distance(first, other) <= 2e-2 for first, other in zip(results, expected, strict=True))


@pytest.mark.slow("gpt-", "gpt_bf16-", "branches-", "unet-", "resnet-", "paddle_fleet-", "gpt_train")
@pytest.mark.parametrize("twin", ["", ".checkpoint"])
@pytest.mark.parametrize("prepare", [inlined, recomputed])
@pytest.mark.parametrize("name", NAMES)
def test_meter_matches_static_timeline(name: str, prepare: Any, twin: str) -> None:
    module = prepare(f"{name}.small{twin}.mlir").clone()
    # A step that has copies enough is left as it is, and the meter knows no calls.
    inline(module)
    function = function_named(module)
    results, metered = meter(function, random_inputs(function, 0, "positive"))
    stated = timeline(function)
    assert metered.operations == stated.operations
    assert metered.live_bytes == stated.live_bytes
    assert metered.constant_peak_bytes > 0
    assert sum(result.nbytes for result in results) == stated.result_bytes


@pytest.mark.slow("gpt-random")
@pytest.mark.parametrize("kind", INPUT_KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_recomputation_changes_no_bit(name: str, kind: InputKind) -> None:
    before = original(f"{name}.small.mlir")
    inputs = random_inputs(function_named(before), 1, kind)
    proof = compare(before, recomputed(f"{name}.small.mlir"), inputs)
    assert proof.equal, proof.difference
    assert kind != "positive" or proof.nan_results == 0


def test_jax_checkpoint_changes_no_bit() -> None:
    before = original("gpt.small.mlir")
    inputs = random_inputs(function_named(before), 2)
    assert compare(before, original("gpt.small.checkpoint.mlir"), inputs).equal


def test_xdsl_interpreter_gives_the_same_bits() -> None:
    module = original("mlp.small.mlir")
    inputs = random_inputs(function_named(module))
    ours = execute(function_named(module), inputs)
    theirs = make_interpreter(module).call_op("main", tuple(inputs))
    assert [our.tobytes() for our in ours] == [other.tobytes() for other in theirs]
