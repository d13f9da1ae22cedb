"""Copies are requested where they are due: twice for a segment that is left and entered again, except through
itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from recompute.analysis.step.order import functions_of
from recompute.analysis.step.phases import phases
from recompute.analysis.step.step import Step
from recompute.mlir_io.parser import parse_module
from recompute.planning.by_segment.copy_requests import CopyRequest, copy_requests
from recompute.planning.by_segment.plan_targets import Targets, without_early_constants
from recompute.planning.graph import Graph

T = "tensor<256xf32>"


def line(result: str, text: str, path: str) -> str:
    return f'  %{result} = stablehlo.{text} : {T} loc("jit(f)/{path}/{text.split()[0]}")'


STEP = "\n".join(
    [
        f"func.func @f(%x: {T}, %ct: {T}) -> {T} {{",
        line("a", "sine %x", "jvp()"),
        line("b", "cosine %a", "jvp()"),
        line("c", "tanh %b", "jvp()"),
        line("g", "multiply %ct, %c", "transpose(jvp())"),
        line("h", "multiply %g, %b", "transpose(jvp())"),
        line("i", "multiply %h, %a", "transpose(jvp())"),
        f"  func.return %i : {T}",
        "}",
    ]
)


def graph_of(text: str) -> Graph:
    actual = phases(functions_of(parse_module(text))[0])
    assert actual is not None
    return Step.of(actual).graph


def requests_between(between: str | None, step: str = STEP) -> list[tuple[int, list[str]]]:
    """Return the requests where `sine` and `tanh` are in segment r, and `cosine` between them is in `between` and
    kept."""
    graph = graph_of(step)
    segments = {0: "r", 2: "r"} | ({} if between is None else {1: between})
    return requests_for(graph, segments, [0, 2])


def requests_for(graph: Graph, segments: Mapping[int, str], operations: Iterable[int]) -> list[tuple[int, list[str]]]:
    """Return before which operation copies are due, and of which operations."""
    result = copy_requests(graph, Targets(segments, frozenset(graph.results_of(operations))), frozenset(), copies=2)
    return [(entry.before, names(graph, entry)) for entry in result]


def names(graph: Graph, request: CopyRequest) -> list[str]:
    return [graph.names[op].partition(".")[2] for op in request.operations]


@pytest.mark.parametrize("between", [None, "other", "r2"])
def test_reentered_segment_is_requested_twice(between: str | None) -> None:
    assert requests_between(between) == [(3, ["tanh"]), (5, ["sine"])]


@pytest.mark.parametrize("between", ["r", "r/inner"])
def test_path_inside_segment_starts_no_new_entry(between: str) -> None:
    assert requests_between(between) == [(3, ["sine", "tanh"])]


def test_value_from_outside_starts_no_new_entry() -> None:
    """There is one request if the operation between the two parts reads nothing of the segment."""
    assert len(requests_between("other", STEP.replace("cosine %a", "cosine %x"))) == 1


def test_value_from_before_segment_starts_no_new_entry() -> None:
    text = STEP.replace("  %a =", line("z", "negate %x", "jvp()") + "\n  %a =", 1).replace("cosine %a", "cosine %z")
    assert len(requests_for(graph_of(text), {1: "r", 3: "r"}, [1, 3])) == 1


def test_operation_belongs_to_latest_entry_read() -> None:
    """The operation %c, which reads %a directly and also through %b outside the segment, belongs to the second
    entry."""
    text = STEP.replace("tanh %b", "add %b, %a").replace("multiply %ct, %c", "multiply %ct, %b")
    text = text.replace("multiply %g, %b", "multiply %g, %a").replace("multiply %h, %a", "multiply %h, %c")
    assert requests_between("other", text) == [(4, ["sine"]), (5, ["add"])]


def test_argument_and_earlier_value_readers_are_one_entry() -> None:
    text = STEP.replace("  %a =", line("z", "negate %x", "jvp()") + "\n  %a =", 1).replace("tanh %b", "tanh %z")
    ((_, operations),) = requests_for(graph_of(text), {1: "r", 3: "r"}, [1, 3])
    assert operations == ["sine", "tanh"]


@pytest.mark.parametrize(("first", "second"), [("b", "c"), ("c", "b")])
def test_alternating_gradients_request_only_computed_values(first: str, second: str) -> None:
    """If two steps share a segment, the first gradient requests only the copies of values that are computed by then."""

    def stated(result: str, text: str, phase: str) -> str:
        return f'  %{result} = stablehlo.{text} {{recompute.phase = "{phase}"}} : {T}'

    lines = [
        stated("a", "sine %x", "primal"),
        stated("g", "multiply %ct, %a", "gradient"),
        stated("b", "cosine %x", "primal"),
        stated("c", "tanh %x", "primal"),
        stated("h", f"multiply %g, %{first}", "gradient"),
        stated("i", f"multiply %h, %{second}", "gradient"),
    ]
    text = "\n".join([f"func.func @f(%x: {T}, %ct: {T}) -> {T} {{", *lines, f"  func.return %i : {T}", "}"])
    graph = graph_of(text)
    forward = [op for op in range(len(graph)) if graph.forward[op]]
    actual = requests_for(graph, dict.fromkeys(forward, "r"), forward)
    assert [(before, len(operations)) for before, operations in actual] == [(1, 1), (4, 2)]


SHARED_CONSTANT = "\n".join(
    [
        f"func.func @f(%x: {T}, %ct: {T}) -> {T} {{",
        '  %k = stablehlo.constant dense<2.0> : tensor<256xf32> loc("jit(f)/jvp()/constant")',
        line("two", "exponential %k", "jvp()"),
        line("a", "sine %x", "jvp()"),
        line("p", "multiply %a, %two", "jvp()"),
        line("b", "cosine %p", "jvp()"),
        line("q", "multiply %b, %two", "jvp()"),
        line("g", "multiply %ct, %two", "transpose(jvp())"),
        line("h", "multiply %g, %b", "transpose(jvp())"),
        line("i", "multiply %h, %two", "transpose(jvp())"),
        line("j", "multiply %i, %a", "transpose(jvp())"),
        line("m", "add %j, %q", "transpose(jvp())"),
        f"  func.return %m : {T}",
        "}",
    ]
)


def test_a_constant_shared_by_segments_starts_no_copies() -> None:
    """The gradient of the second segment reads the constant expression of the first one: a copy of it there would
    start the first segment's copies."""
    graph = graph_of(SHARED_CONSTANT)
    names = "exponential sine multiply cosine multiply".split()
    assert graph.names[1:6] == tuple(f"stablehlo.{name}" for name in names)
    segments = {1: "first", 2: "first", 3: "first", 4: "second", 5: "second"}
    targets = Targets(segments, frozenset(graph.results_of([1, 2, 4])))
    kept = without_early_constants(graph, targets)
    assert targets.values - kept.values == frozenset(graph.results_of([1]))
    # Without another segment in between it is copied with the rest.
    alone = Targets({op: "first" for op in segments}, targets.values)
    assert without_early_constants(graph, alone).values == targets.values
