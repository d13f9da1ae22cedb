"""Marks on single operations apply within the attempts; they do not replace the choice of segments."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import StringAttr

from recompute.analysis.step.module_steps import numbered_steps
from recompute.analysis.step.step import Step
from recompute.dialects.mark_kind import MarkKind
from recompute.dialects.names import Names
from recompute.options.recompute_options import RecomputeOptions
from recompute.search.choice.choose import ChosenAttempt, choose_for
from recompute.test.examples import inlined

EXAMPLE = "chain.small.mlir"
"""A step without scopes, which is divided by structure."""


def choose_with(mark: MarkKind | None, position: int | None = None) -> tuple[Step, ChosenAttempt]:
    """Choose for the example with a mark on the operation at `position`."""
    module = inlined(EXAMPLE).clone()
    ((function, step),) = numbered_steps(module)
    if mark is not None and position is not None:
        step.operation(position).attributes[Names.RECOMPUTE] = StringAttr(mark)
        ((function, step),) = numbered_steps(module)
    return step, choose_for(function, step, RecomputeOptions())


def copied(choice: ChosenAttempt) -> set[int]:
    return {op for group in choice.chosen.planned.plan.groups for op in group.operations}


def without_mark() -> tuple[ChosenAttempt, list[int], list[int]]:
    """Return the choice without a mark, and the operations that gradients read: those it copies, and the others."""
    step, choice = choose_with(None)
    graph, copies = step.graph, copied(choice)
    read = [
        op for op in range(len(graph)) if graph.forward[op] and any(graph.gradient_readers[v] for v in graph.makes[op])
    ]
    return choice, [op for op in read if op in copies], [op for op in read if op not in copies]


@pytest.mark.parametrize("mark", [MarkKind.PREFER_RECOMPUTE, MarkKind.MUST_RECOMPUTE, MarkKind.MUST_SAVE])
def test_one_mark_costs_little_of_the_saving(mark: MarkKind) -> None:
    plain, copies, _ = without_mark()
    _, marked = choose_with(mark, copies[0])
    assert marked.refused is None
    assert marked.chosen.peaks.xla <= 1.2 * plain.chosen.peaks.xla < 0.5 * plain.before.xla


def test_an_operation_that_must_be_saved_is_not_copied() -> None:
    _, copies, _ = without_mark()
    for position in copies[:3]:
        assert position not in copied(choose_with(MarkKind.MUST_SAVE, position)[1])


def test_an_operation_that_must_be_recomputed_is_copied() -> None:
    """The choice alone would save it, as an output of its segment or in the last segment."""
    _, copies, saved = without_mark()
    outputs = [position for position in saved if position < max(copies)]
    last = [position for position in saved if position > max(copies)]
    assert outputs and last
    for position in (*outputs[:3], *last[:3]):  # The first gradient operation reads the others, so no gate exists.
        assert position in copied(choose_with(MarkKind.MUST_RECOMPUTE, position)[1])
