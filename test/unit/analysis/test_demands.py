"""When copies are due: a segment that is left and entered again asks twice, unless what lies between is in it."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation, SSAValue

from recompute.analysis.copies.demands import Demand, demands
from recompute.analysis.copies.wanted import Wanted
from recompute.analysis.functions import functions_of
from recompute.analysis.phases import phases
from recompute.analysis.step import Step
from recompute.dialects.parser import parse_module
from recompute.rules.names import name_of

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


def due(between: str | None, step: str = STEP) -> list[Demand]:
    """`sine` and `tanh` are of segment r, `cosine` between them is of the segment `between`, and kept."""
    found = phases(functions_of(parse_module(step))[0])
    assert found is not None
    a, b, c = found.order.operations[:3]
    segments: dict[Operation, str] = {a: "r", c: "r"} | ({} if between is None else {b: between})
    values = frozenset[SSAValue]([*a.results, *c.results])
    return demands(Step.of(found), Wanted(segments, values), frozenset(), copies=2)


@pytest.mark.parametrize("between", [None, "other", "r2"])
def test_a_region_that_is_entered_again_is_asked_for_twice(between: str | None) -> None:
    found = due(between)
    assert [demand.position for demand in found] == [3, 5]
    assert [[name_of(op) for op in demand.operations] for demand in found] == [["stablehlo.tanh"], ["stablehlo.sine"]]


@pytest.mark.parametrize("between", ["r", "r/inner"])
def test_what_lies_in_the_region_is_no_way_out_of_it(between: str) -> None:
    (one,) = due(between)
    assert one.position == 3
    assert [name_of(op) for op in one.operations] == ["stablehlo.sine", "stablehlo.tanh"]


def test_a_value_from_outside_is_no_way_back_into_the_region() -> None:
    """The same, but what lies between reads nothing of the segment."""
    assert len(due("other", STEP.replace("cosine %a", "cosine %x"))) == 1


def test_nor_is_one_that_an_operation_before_the_region_has_made() -> None:
    text = STEP.replace("  %a =", line("z", "negate %x", "jvp()") + "\n  %a =", 1).replace("cosine %a", "cosine %z")
    found = phases(functions_of(parse_module(text))[0])
    assert found is not None
    _, a, _, c = found.order.operations[:4]
    wanted = Wanted({a: "r", c: "r"}, frozenset[SSAValue]([*a.results, *c.results]))
    assert len(demands(Step.of(found), wanted, frozenset(), copies=2)) == 1


def test_an_operation_belongs_to_the_latest_entry_that_it_reads() -> None:
    """%c reads %a directly and by way of %b, outside of the segment; %a is needed before it."""
    text = STEP.replace("tanh %b", "add %b, %a").replace("multiply %ct, %c", "multiply %ct, %b")
    text = text.replace("multiply %g, %b", "multiply %g, %a").replace("multiply %h, %a", "multiply %h, %c")
    found = due("other", text)
    assert [demand.position for demand in found] == [4, 5]
    assert [[name_of(op) for op in demand.operations] for demand in found] == [["stablehlo.sine"], ["stablehlo.add"]]


def test_what_reads_arguments_and_what_reads_earlier_values_is_one_entry() -> None:
    text = STEP.replace("  %a =", line("z", "negate %x", "jvp()") + "\n  %a =", 1).replace("tanh %b", "tanh %z")
    found = phases(functions_of(parse_module(text))[0])
    assert found is not None
    _, a, _, c = found.order.operations[:4]
    wanted = Wanted({a: "r", c: "r"}, frozenset[SSAValue]([*a.results, *c.results]))
    (one,) = demands(Step.of(found), wanted, frozenset(), copies=2)
    assert [name_of(op) for op in one.operations] == ["stablehlo.sine", "stablehlo.tanh"]


@pytest.mark.parametrize(("first", "second"), [("b", "c"), ("c", "b")])
def test_where_gradients_alternate_nothing_is_asked_for_before_it_was_computed(first: str, second: str) -> None:
    """Two steps share a segment: the first gradient asks for what is there by then, the second one for the rest."""

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
    found = phases(functions_of(parse_module(text))[0])
    assert found is not None
    forward = [op for op in found.order.operations if found.is_forward(op)]
    wanted = Wanted(dict.fromkeys(forward, "r"), frozenset(op.results[0] for op in forward))
    asked = demands(Step.of(found), wanted, frozenset(), copies=2)
    assert [(demand.position, len(demand.operations)) for demand in asked] == [(1, 1), (4, 2)]
