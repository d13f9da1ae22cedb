"""What the copies of a unit wait for."""

from __future__ import annotations

from recompute.analysis.functions import functions_of
from recompute.analysis.phases import phases
from recompute.analysis.policy import decide
from recompute.analysis.selection import Selection
from recompute.dialects.parser import parse_module

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


def test_gates_lead_to_the_readers_through_later_gradient_operations() -> None:
    """The first reader needs %g; %g2 comes to another one by way of %p, which runs after the copies."""
    found = phases(functions_of(parse_module(STEP))[0])
    assert found is not None
    (one,) = decide(found, Selection(regions="b")).decisions
    assert [gate.name_hint for unit in one.units for gate in unit.gates] == ["g", "g2"]
