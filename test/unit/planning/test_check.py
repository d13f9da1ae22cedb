"""Validation of plans: each rule for a plan on a graph, broken one at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from recompute.planning.check import unknown_operations, violations
from recompute.planning.plan import Batch, CopyGroup, NotRecomputed, Plan
from recompute.planning.plan_file import OperationNote
from recompute.test.named_steps import named_step

T = "tensor<256xf32>"
P, G = '{recompute.phase = "primal"}', '{recompute.phase = "gradient"}'
STEP, VALUE = named_step(f"""
func.func @f(%x: {T}, %ct: {T}) -> ({T}, {T}) {{
  %a = stablehlo.sine %x {P} : {T}
  %b = stablehlo.tanh %a {P} : {T}
  %y = stablehlo.cosine %b {P} : {T}
  %g = stablehlo.multiply %ct, %y {G} : {T}
  %h = stablehlo.multiply %g, %b {G} : {T}
  %i = stablehlo.multiply %h, %a {G} : {T}
  func.return %y, %i : {T}, {T}
}}
""")
X, CT, A, B, Y, GATE, H, LAST = (STEP.number(VALUE[name]) for name in ("x", "ct", "a", "b", "y", "g", "h", "i"))
GOOD = CopyGroup("s", 4, (Batch((0, 1), (X,)),), (1, 1), (A, B), (GATE,))


def violations_of(*groups: CopyGroup) -> list[str]:
    return list(violations(STEP.graph, Plan(groups), {2}))


def test_valid_plan_has_no_violations() -> None:
    assert violations_of(GOOD) == []
    assert violations_of(GOOD, replace(GOOD, before=5, gates=(H,), numbers=(2, 2))) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"before": 7}, "it refers to an operation that does not exist: the graph has 7 operations, numbered from 0"),
        (
            {"batches": (Batch((0, -1), (X,)),)},
            "it refers to an operation that does not exist: the graph has 7 operations",
        ),
        ({"gates": (8,)}, "it refers to a value that does not exist: the graph has 8 values, numbered from 0"),
        ({"numbers": (1,)}, "each copy must have a number"),
        ({"numbers": (1, 0)}, "each copy must have a number"),
        ({"batches": (Batch((0, 2), (X, B)),), "replaces": (A,)}, "stablehlo.cosine, operation 2, must not run twice"),
        ({"batches": (Batch((0, 5), (X, H)),), "replaces": (A,)}, "operation 5, is copied before it has run"),
        ({"batches": (Batch((0, 1), ()),)}, "operation 0, reads value 0, which is neither copied nor an input"),
        ({"batches": (Batch((1, 0), (X,)),)}, "operation 1, reads value 2, which is neither copied nor an input"),
        ({"batches": (Batch((0, 0), (X,)),), "replaces": (A,)}, "an operation is copied twice"),
        ({"batches": (Batch((0, 1), (X, LAST)),)}, "an input is computed after the copies that read it"),
        ({"replaces": (Y,)}, "the group replaces a value that it does not compute"),
        ({"batches": (Batch((0, 1), (X, A)),)}, "the group computes one of its own inputs"),
        ({"batches": (Batch((0,), (X,)), Batch((1,), (), (B,)))}, "waits for a value that no earlier batch computes"),
        ({"gates": (B,)}, "none of its gates is a gradient value"),
        ({"gates": ()}, "none of its gates is a gradient value"),
        ({"gates": (GATE, LAST)}, "one of its gates is computed after the copies"),
    ],
)
def test_each_broken_rule_is_reported(change: dict[str, Any], words: str) -> None:
    result = violations_of(replace(GOOD, **change))
    assert result and any(words in entry for entry in result)
    assert all(entry.startswith("group 0: ") for entry in result)


def test_duplicate_copy_number_is_a_violation() -> None:
    assert "group 1: two copies of operation 0 have the number 1" in violations_of(
        GOOD, replace(GOOD, before=5, gates=(H,))
    )


def test_groups_must_be_in_the_order_of_their_places() -> None:
    later = replace(GOOD, before=5, gates=(H,), numbers=(2, 2))
    assert violations_of(later, GOOD) == [
        "group 1: its copies precede those of group 0, but groups must be in program order"
    ]


def test_notes_on_missing_operations_are_violations() -> None:
    plan = Plan((), (NotRecomputed("s", 3, "why"), NotRecomputed("s", 7, "why")))
    assert list(violations(STEP.graph, plan)) == [
        "kept 1: operation 7 does not exist; the graph has 7 operations, numbered from 0"
    ]
    assert list(unknown_operations(STEP.graph, [OperationNote(-1)])) == [
        "note 0: operation -1 does not exist; the graph has 7 operations, numbered from 0"
    ]
