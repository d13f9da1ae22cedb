"""Phases after copying can be updated incrementally, since every new operation waits for the gradient."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation

from recompute.analysis.step.module_steps import numbered_steps
from recompute.analysis.step.phases import Phases, phases, updated_phases
from recompute.options.selection import AUTO
from recompute.rewriting.mark import mark_steps
from recompute.rules.effects import is_constant
from recompute.search.prepare import prepare
from recompute.test.examples import original
from recompute.transforms.clone import clone
from recompute.transforms.cse import cse
from recompute.transforms.lower import lower

STEPS = ("mlp.small.mlir", "gpt.small.mlir", "unet.small.mlir", "tied.small.mlir", "branches.small.mlir")


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("target", ["stablehlo", "none"])
def test_known_phases_equal_computed_phases(name: str, target: str) -> None:
    work = prepare(original(name)).module
    steps = numbered_steps(work)
    mark_steps(steps, AUTO)
    assert clone(work, steps=steps).copies
    for change in (lambda: cse(work, {function: step.phases for function, step in steps}), lambda: lower(work, target)):
        change()
        for function, step in steps:
            actual = phases(function)
            assert actual is not None
            assert _without_constants(updated_phases(step.phases)) == _without_constants(actual)


def _without_constants(known: Phases) -> dict[Operation, str]:
    """Return the phases of all but constants, which may be merged across phases."""
    return {op: phase for op, phase in known.phase.items() if not is_constant(op)}
