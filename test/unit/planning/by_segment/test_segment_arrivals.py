"""If a layer is applied to two inputs, each application is copied with its own gradient."""

from __future__ import annotations

import pytest

from recompute.analysis.step.order import functions_of
from recompute.analysis.step.phases import phases
from recompute.analysis.step.step import Step
from recompute.mlir_io.parser import parse_module
from recompute.planning.by_segment.plan_targets import Targets
from recompute.planning.by_segment.segment_arrivals import first_uses, later_entries

T = "tensor<8x8xf32>"
PHASE = '{recompute.phase = "gradient"}'
LEFT = ("%a = stablehlo.multiply %x, %w", "%b = stablehlo.tanh %a")
RIGHT = ("%c = stablehlo.multiply %y, %w", "%d = stablehlo.tanh %c")
BACK_LEFT = (f"%i = stablehlo.multiply %ct, %b {PHASE}", f"%j = stablehlo.multiply %i, %a {PHASE}")
BACK_RIGHT = (f"%g = stablehlo.multiply %ct, %d {PHASE}", f"%h = stablehlo.multiply %g, %c {PHASE}")


def starts(*lines: str) -> list[int]:
    """Return the positions in the backward pass where copies of the second and later entries into the segment are due.

    The segment holds all forward operations but `negate`.
    """
    body = "".join(f"  {line} : {T}\n" for line in lines)
    text = f"func.func @f(%x: {T}, %y: {T}, %w: {T}, %ct: {T}) -> {T} {{\n{body}  func.return %j : {T}\n}}"
    actual = phases(functions_of(parse_module(text))[0])
    assert actual is not None
    graph = Step.of(actual).graph
    segment = {op for op in range(len(graph)) if graph.forward[op] and graph.names[op] != "stablehlo.negate"}
    values = graph.results_of(segment)
    targets = Targets(dict.fromkeys(segment, "one"), frozenset(values))
    uses = first_uses(graph, targets, segment, values)
    return list(later_entries(graph, uses, segment.__contains__))


def test_second_entry_is_due_after_first_is_read() -> None:
    assert starts(*LEFT, *RIGHT, *BACK_RIGHT, *BACK_LEFT) == [6]


def test_second_entry_is_not_due_while_the_first_is_read() -> None:
    mixed = (BACK_RIGHT[0], BACK_LEFT[0], BACK_RIGHT[1], BACK_LEFT[1])
    assert starts(*LEFT, *RIGHT, *mixed) == []


def test_entries_read_by_one_operation_are_not_split() -> None:
    both = (BACK_RIGHT[0], f"%h = stablehlo.multiply %c, %b {PHASE}", BACK_LEFT[1].replace("%i", "%h"))
    assert starts(*LEFT, *RIGHT, *both) == []


@pytest.mark.parametrize(
    "right",
    [
        (RIGHT[0], "%d = stablehlo.multiply %c, %b"),
        (RIGHT[0].replace("%y", "%b"), RIGHT[1]),
        ("%c = stablehlo.sine %y", RIGHT[1]),
    ],
    ids=["a value of the other entry", "one after the other", "other operations"],
)
def test_connected_or_unequal_parts_are_one_entry(right: tuple[str, str]) -> None:
    assert starts(*LEFT, *right, *BACK_RIGHT, *BACK_LEFT) == []


def test_earlier_computed_input_connects_its_readers() -> None:
    """The readers of a computed input form one entry, as cos x and sin x; a shared argument, such as a weight, joins
    nothing."""
    shared = ("%w2 = stablehlo.negate %w",)
    lines = [line.replace("%w", "%w2") for line in (*LEFT, *RIGHT)]
    body = (*shared, *lines, *BACK_RIGHT, *BACK_LEFT)
    assert starts(*body) == []
