"""Gates: the gradient values that the copies of a group wait for."""

from __future__ import annotations

import pytest
from xdsl.ir import SSAValue

from recompute.analysis.step.order import functions_of
from recompute.analysis.step.phases import phases
from recompute.analysis.step.step import Step
from recompute.mlir_io.parser import parse_module
from recompute.options.selection import Selection
from recompute.planning.gates import gates_for, is_gate
from recompute.search.choice.segment_decisions import segment_decisions

T = "tensor<256xf32>"
STEP = f"""
func.func @f(%x: {T}, %ct: {T}) -> ({T}, {T}) {{
  %a = stablehlo.sine %x : {T} loc("jit(f)/jvp(b)/sine")
  %c = stablehlo.tanh %a : {T} loc("jit(f)/jvp(b)/tanh")
  %d = stablehlo.cosine %c : {T} loc("jit(f)/jvp(b)/cosine")
  %e = stablehlo.negate %d : {T} loc("jit(f)/jvp()/negate")
  %g = stablehlo.multiply %ct, %e : {T} loc("jit(f)/transpose(jvp())/mul")
  %g2 = stablehlo.multiply %e, %e : {T} loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %c : {T} loc("jit(f)/transpose(jvp(b))/mul")
  %p = stablehlo.negate %g2 : {T} loc("jit(f)/transpose(jvp(b))/neg")
  %k = stablehlo.multiply %p, %a : {T} loc("jit(f)/transpose(jvp(b))/mul")
  func.return %h, %k : {T}, {T}
}}
"""


def test_gates_reach_readers_through_later_gradients() -> None:
    """The gate is %g, which the first reader needs; %g2 reaches its reader only through %p, which runs after the
    copies."""
    actual = phases(functions_of(parse_module(STEP))[0])
    assert actual is not None
    decided = segment_decisions(Step.of(actual), Selection(segments="b"))
    (first,) = decided.decisions
    gates = [decided.step.value(gate).name_hint for group in first.groups for gate in group.gates]
    assert gates == ["g", "g2"]


def step_of(*backward: str) -> tuple[Step, dict[str | None, SSAValue]]:
    """Return a step with this backward pass, and its values by name."""
    lines = "\n".join(backward)
    function = functions_of(
        parse_module(f"""
func.func @f(%x: {T}) -> ({T}, {T}) {{
  %a = stablehlo.sine %x {{recompute.phase = "primal"}} : {T}
  %b = stablehlo.tanh %x {{recompute.phase = "primal"}} : {T}
{lines}
  func.return %b, %h : {T}, {T}
}}
""")
    )[0]
    actual = phases(function)
    assert actual is not None
    return Step.of(actual), {value.name_hint: value for op in actual.order.operations for value in op.results}


G = '{recompute.phase = "gradient"}'


@pytest.mark.parametrize(("read", "gates"), [("a", []), ("b", ["g"])])
def test_gate_must_need_more_than_the_recomputed_value(read: str, gates: list[str]) -> None:
    """A value that needs only the recomputed value is not a gate: the copies could run right after the forward
    value."""
    step, value = step_of(
        f"  %g = stablehlo.negate %{read} {G} : {T}",
        f"  %h = stablehlo.multiply %g, %a {G} : {T}",
    )
    result = gates_for(step.graph, [step.number(value["a"])], [3], 3)
    assert [step.value(entry).name_hint for entry in result] == gates


def test_barrier_result_is_gate_only_if_operand_is_gate() -> None:
    step, _ = step_of(
        f"  %g = stablehlo.negate %b {G} : {T}",
        f'  %d:3 = "stablehlo.optimization_barrier"(%g, %b, %x) {G} : ({T}, {T}, {T}) -> ({T}, {T}, {T})',
        f"  %h = stablehlo.multiply %g, %a {G} : {T}",
    )
    assert [is_gate(step.graph, leg) for leg in step.graph.makes[3]] == [True, False, False]
