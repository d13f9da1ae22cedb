"""Guarantees of the pipeline on about a hundred random training steps; `run.py` runs any number."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recompute.interpreters.executor import execute
from recompute.interpreters.inputs import random_inputs
from recompute.mlir_io.parser import parse_module
from recompute.support.operations import name_of

from .checks import CHECKS, EXECUTION, Checks, is_executable
from .programs import Shape, generate
from .relations import RELATIONS
from .requests import parsed, step_of
from .run import Ledger, parse, run_many, run_one

COUNT = 120
PART = 40


# These run the pipeline again or parse the result: each program gets one of them, in turn.
SLOW: Checks = {name: CHECKS[name] for name in ("text", "second run", "scheduled")} | RELATIONS


def checks_for(seed: int) -> Checks:
    turn = list(SLOW)[seed % len(SLOW)]
    return {name: first for name, first in (CHECKS | EXECUTION | SLOW).items() if name == turn or name not in SLOW}


@cache
def ledger_of(first: int) -> tuple[Ledger, list[str]]:
    """Return the ledger for part of the seeds, and descriptions of the problems."""
    ledger, problems = Ledger(), list[str]()
    for seed in range(first, first + PART):
        request, module, outcome = run_one(seed, checks_for(seed))
        ledger.add(seed, {name_of(op) for op in module.walk()}, outcome)
        problems += [f"seed {seed}, {request}: {problem.check}: {problem.detail}" for problem in outcome.problems]
    return ledger, problems


@pytest.mark.slow("40", "80")
@pytest.mark.parametrize("first", range(0, COUNT, PART))
def test_every_program_passes_all_checks(first: int) -> None:
    assert ledger_of(first)[1] == []


@pytest.mark.slow
def test_most_programs_are_recomputed() -> None:
    """Most random programs are recomputed, since unchanged ones test nothing."""
    ledgers = [ledger_of(first)[0] for first in range(0, COUNT, PART)]
    assert sum(ledger.fired for ledger in ledgers) >= 0.7 * COUNT
    operations = sum((ledger.operations for ledger in ledgers), Counter[str]())
    expected = "stablehlo.while func.call stablehlo.dot_general other.mystery stablehlo.if stablehlo.case"
    expected += " stablehlo.gather stablehlo.dynamic_slice stablehlo.dynamic_update_slice stablehlo.scatter"
    expected += " stablehlo.rng_bit_generator"
    assert set(expected.split()) <= operations.keys()


def test_interrupted_run_resumes_with_same_result(tmp_path: Path) -> None:
    def run_up_to(count: int, *more: str) -> Ledger:
        return run_many(range(7, 7 + count), parse(["--essential", *more]))

    noted = ("--ledger", str(tmp_path / "ledger.json"))
    run_up_to(6, *noted)
    resumed, whole = run_up_to(9, *noted), run_up_to(9)
    assert replace(resumed, seconds=0) == replace(whole, seconds=0)
    assert Ledger.read(tmp_path / "ledger.json") == resumed


def test_seed_determines_the_program_in_every_process() -> None:
    script = (
        "from recompute.test.property.programs import generate; print(*[generate(s).text for s in range(5)], sep='')"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", script], env=os.environ | {"PYTHONHASHSEED": item}, capture_output=True, check=True
        ).stdout.decode()
        for item in ("1", "2")
    ]
    assert texts[0] == texts[1] == "".join(generate(seed).text for seed in range(5)) + "\n"


def test_values_of_programs_are_moderate() -> None:
    for seed in range(40):
        module = parsed(generate(seed))
        if not is_executable(module):
            continue
        results = execute(step_of(module), random_inputs(step_of(module), seed))
        # The state of a random generator is no number to be moderate.
        numbers = (result.astype(np.float64) for result in results if result.dtype != np.uint64)
        largest = max(float(np.max(np.abs(number))) for number in numbers)
        assert largest < 1e4, f"seed {seed}"


def only_loss_and_gradients(shape: Shape) -> Shape:
    return replace(shape, takes_cotangent=False, returns_loss=True, update="none", unknown=False)


@pytest.mark.slow
def test_gradients_equal_finite_differences() -> None:
    """Check that the loss changes along a random direction as the gradients predict, in all but a few programs.

    At kinks, such as that of a maximum, a difference quotient is wrong.
    """
    errors = [error for seed in range(150) if (error := error_of_gradient(seed)) is not None]
    assert len(errors) >= 30
    assert np.median(errors) < 0.01
    assert np.mean([error < 0.1 for error in errors]) > 0.85


NO_SLOPE = ("bf16", "stablehlo.if", "stablehlo.case", "stablehlo.dynamic", "reducer(")


def error_of_gradient(seed: int, step: float = 1e-2) -> float | None:
    """Return the relative difference between slope and gradient.

    None if rounding to bf16 or a flat loss makes the slope meaningless, or if the loss depends on a piece without a
    derivative.
    """
    program = generate(seed, only_loss_and_gradients)
    function = step_of(parse_module(program.text))
    weights = [index for index, first in enumerate(function.body.block.args) if (first.name_hint or "").startswith("w")]
    if not weights or any(item in program.text for item in NO_SLOPE):
        return None
    # Rows of a table are differentiated, rows of a block's value are not.
    if program.text.count('"stablehlo.gather"') != program.text.count('"stablehlo.scatter"'):
        return None
    inputs = random_inputs(function, seed)
    generator = np.random.default_rng(seed)
    directions = {index: generator.normal(0, 1, inputs[index].shape).astype(np.float32) for index in weights}

    def at(distance: float) -> tuple[Any, ...]:
        moved = [
            first + np.float32(distance) * directions[i] if i in directions else first for i, first in enumerate(inputs)
        ]
        return execute(function, moved)

    slope = float(at(step)[0] - at(-step)[0]) / (2 * step)
    gradients = at(0.0)[program.gradients_from :]
    expected = sum(float(np.sum(g * directions[i])) for g, i in zip(gradients, weights, strict=False))
    size = max(abs(slope), abs(expected))
    return abs(slope - expected) / size if size > 1e-4 else None
