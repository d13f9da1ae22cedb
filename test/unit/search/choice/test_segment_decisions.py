"""Decision about a segment: copies, gates, and saved bytes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from recompute.analysis.copies.decisions import Decision
from recompute.analysis.step.order import functions_of
from recompute.analysis.step.phases import phases
from recompute.analysis.step.step import Step
from recompute.mlir_io.parser import parse_module
from recompute.options.selection import BadSelection, Selection
from recompute.planning.skip_reason import SkipReason
from recompute.search.choice.segment_decisions import segment_decisions
from recompute.support.interface import command_line
from recompute.support.operations import name_of

T = "tensor<256xf32>"
HEAD = f"func.func @f(%x: {T}, %ct: {T}) -> ({T}, {T}) {{"


def forward(result: str, text: str, scope: str = "b") -> str:
    return f'  %{result} = stablehlo.{text} : {T} loc("jit(f)/jvp({scope})/{text.split()[0]}")'


def backward(result: str, text: str, scope: str = "b") -> str:
    return f'  %{result} = stablehlo.{text} : {T} loc("jit(f)/transpose(jvp({scope}))/{text.split()[0]}")'


def decision(*lines: str, returns: str) -> tuple[Step, Decision]:
    text = "\n".join([HEAD, *lines, f"  func.return {returns} : {T}, {T}", "}"])
    actual = phases(functions_of(parse_module(text))[0])
    assert actual is not None
    decided = segment_decisions(Step.of(actual), Selection(segments="b"))
    (first,) = decided.decisions
    return decided.step, first


def names_of(step: Step, values: Iterable[int]) -> list[str | None]:
    return [step.value(value).name_hint for value in values]


def made_by(step: Step, operations: Iterable[int]) -> list[str | None]:
    return names_of(step, step.graph.results_of(operations))


def test_copies_are_gradient_operands_and_producers() -> None:
    step, first = decision(
        forward("a", "sine %x"),
        forward("c", "tanh %a"),
        forward("d", "cosine %c"),
        forward("e", "negate %d", ""),
        backward("g", "multiply %ct, %e", ""),
        backward("h", "multiply %g, %c"),
        returns="%e, %h",
    )
    assert first.recomputed
    (group,) = first.groups
    assert made_by(step, group.operations) == ["a", "c"]
    assert [name_of(op) for op in first.outputs] == ["stablehlo.cosine"]
    assert names_of(step, group.gates) == ["g"]
    assert names_of(step, group.inputs) == ["x"]
    # %c is no longer held; %a never was. The argument %x is there anyway.
    assert (group.freed_bytes, group.pinned_bytes, group.extra_flops) == (1024, 0, 512)


def test_error_of_unmatched_pattern_passes_through_context_managers() -> None:
    with pytest.raises(BadSelection, match=r"no segment matches 'b'; the scopes are: other"), command_line():
        decision(forward("c", "tanh %x", "other"), backward("g", "multiply %ct, %c"), returns="%c, %g")


def test_constant_expressions_are_not_gates() -> None:
    _, first = decision(
        forward("a", "sine %x"),
        forward("c", "tanh %a"),
        '  %one = stablehlo.constant dense<1.0> : tensor<256xf32> loc("jit(f)")',
        backward("k", "negate %one", ""),
        backward("h", "multiply %k, %a"),
        returns="%c, %h",
    )
    assert first.reason is not None and "backward pass begins with these values" in first.reason
    assert not first.groups


def test_keeping_equal_size_input_saves_nothing() -> None:
    _, first = decision(
        forward("y", "negate %x", ""),
        forward("a", "sine %y"),
        forward("c", "tanh %a"),
        backward("g", "multiply %ct, %ct", ""),
        backward("h", "multiply %g, %a"),
        returns="%c, %h",
    )
    (group,) = first.groups
    assert (group.freed_bytes, group.pinned_bytes) == (1024, 1024)
    size = "1.0 KiB (1024 bytes)"
    assert (
        first.reason
        == f"no memory would be freed on balance: recomputing frees {size} and keeps {size} alive in their place"
    )


def test_segment_that_no_gradient_reads_is_skipped() -> None:
    _, first = decision(
        forward("a", "sine %x"),
        forward("c", "tanh %a"),
        backward("g", "multiply %ct, %ct", ""),
        returns="%c, %g",
    )
    assert first.reason == "no gradient operation reads any of the values"


def test_gradient_that_reads_only_an_output_is_stated() -> None:
    """Of the two results of the loop, the gradient reads one, which is an output of the segment."""
    loop = (
        "  %c0 = stablehlo.constant dense<0> : tensor<i32>\n"
        "  %l:2 = stablehlo.while(%k = %c0, %v = %x) : tensor<i32>, tensor<256xf32>\n"
        "    cond {\n"
        "      %p = stablehlo.compare LT, %k, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "      stablehlo.return %p : tensor<i1>\n"
        "    } do {\n"
        "      stablehlo.return %k, %v : tensor<i32>, tensor<256xf32>\n"
        '    } loc("jit(f)/jvp(b)/while")'
    )
    _, first = decision(
        loop,
        '  %c = stablehlo.tanh %l#1 : tensor<256xf32> loc("jit(f)/jvp(c)/tanh")',
        backward("g", "multiply %ct, %c", ""),
        backward("h", "multiply %g, %l#1"),
        returns="%c, %h",
    )
    assert first.reason is not None and first.reason.startswith("gradient operations read only values that are kept")


def test_constant_expressions_are_not_recomputed() -> None:
    _, first = decision(
        '  %k = stablehlo.constant dense<1.0> : tensor<256xf32> loc("jit(f)")',
        forward("a", "sine %k"),
        forward("c", "tanh %x"),
        backward("g", "multiply %ct, %ct", ""),
        backward("h", "multiply %g, %a"),
        returns="%c, %h",
    )
    assert first.reason == "all values are computed only from constants, and keeping them costs nothing"


def test_operations_that_can_wait_are_delayed_until_the_mask() -> None:
    """The operation %a waits until the mask is computed: %b and %c are larger, and only %m stays live of them."""
    step, actual = decision(
        forward("a", "sine %x"),
        forward("b", "cosine %ct"),
        forward("c", "add %b, %b"),
        '  %m = stablehlo.convert %c : (tensor<256xf32>) -> tensor<256xi1> loc("jit(f)/jvp(b)/convert")',
        '  %n = stablehlo.convert %m : (tensor<256xi1>) -> tensor<256xf32> loc("jit(f)/jvp(b)/convert")',
        forward("d", "multiply %a, %n"),
        forward("e", "tanh %d"),
        backward("g", "multiply %ct, %e", ""),
        backward("h", "multiply %g, %d"),
        returns="%e, %h",
    )
    (group,) = actual.groups
    first, second = group.batches
    assert made_by(step, first.operations) == ["b", "c", "m", "n"]
    assert names_of(step, first.inputs) == ["ct"]
    assert made_by(step, second.operations) == ["a", "d"]
    assert names_of(step, second.inputs) == ["x"]
    assert names_of(step, second.awaited) == ["n"]


def test_returned_values_are_not_recomputed() -> None:
    _, first = decision(
        forward("a", "sine %x"),
        forward("c", "tanh %a"),
        backward("g", "multiply %ct, %ct", ""),
        backward("h", "multiply %g, %a"),
        returns="%a, %h",
    )
    assert first.reason is SkipReason.ONLY_KEPT_READ


def test_segment_read_only_through_its_output_is_skipped() -> None:
    """A segment is not recomputed if gradient operations read only its output."""
    _, first = decision(
        forward("a", "sine %x"),
        forward("c", "tanh %a"),
        '  %d = stablehlo.cosine %c : tensor<256xf32> loc("jit(f)/jvp()/cosine")',
        backward("g", "multiply %ct, %c"),
        returns="%d, %g",
    )
    assert first.reason is SkipReason.ONLY_KEPT_READ


def test_reason_names_operations_without_declared_effects() -> None:
    unknown = ('  %{} = "my.{}"(%{}) : (tensor<256xf32>) -> tensor<256xf32> loc("jit(f)/jvp(b)/op")').format
    lines = (
        unknown("a", "sine", "x"),
        unknown("b", "cos", "a"),
        forward("c", "tanh %b"),
        backward("g", "multiply %ct, %a"),
        backward("h", "multiply %g, %b"),
    )
    _, first = decision(*lines, returns="%c, %h")
    assert first.reason == (
        "gradient operations read results of my.sine and my.cos, which must not run twice: the effects of my.sine are "
        "unknown; if it is pure, declare it to the passes, "
        '`from recompute.rules import pure, register; register("my.sine", pure())`, and to the proof, '
        '`from recompute.proof import register_pure; register_pure("my.sine")` (docs/foreign_dialects.md)'
    )
