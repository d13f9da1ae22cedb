"""Who reads what behind a token. The rest is in test/filecheck/transforms/clone*.mlir."""

from __future__ import annotations

from xdsl.ir import Operation

from recompute.analysis.functions import functions_of, single_block
from recompute.dialects.parser import parse_module
from recompute.rules.names import name_of
from recompute.transforms.clone import clone

T = "tensor<256xf32>"
MARK = "recompute.recompute = true"
STEP = f"""
func.func @f(%x: {T}, %w: {T}, %ct: {T}) -> ({T}, {T}) {{
  %a = stablehlo.multiply %x, %w {{{MARK}, recompute.region = "a"}} : {T} loc("jit(f)/jvp(a)/mul")
  %b = stablehlo.sine %a : {T} loc("jit(f)/jvp()/sin")
  %c = stablehlo.add %b, %w {{{MARK}, recompute.region = "c"}} : {T} loc("jit(f)/jvp(c)/add")
  %e = stablehlo.tanh %c : {T} loc("jit(f)/jvp()/tanh")
  %g0 = stablehlo.multiply %ct, %w : {T} loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %c : {T} loc("jit(f)/transpose(jvp())/mul")
  %g2 = stablehlo.multiply %g1, %w : {T} loc("jit(f)/transpose(jvp())/mul")
  %g3 = stablehlo.multiply %g2, %a : {T} loc("jit(f)/transpose(jvp())/mul")
  %g4 = stablehlo.multiply %g3, %w : {T} loc("jit(f)/transpose(jvp())/mul")
  func.return %e, %g4 : {T}, {T}
}}
"""


def test_gradient_operations_read_a_value_behind_the_latest_token_before_them() -> None:
    module = parse_module(STEP)
    assert len(clone(module).units) == 2
    listed = list(single_block(functions_of(module)[0]).ops)
    by_name = {op.results[0].name_hint: op for op in listed if op.results and name_of(op) == "stablehlo.multiply"}
    first, second = (op for op in listed if name_of(op) == "recompute.depend")
    read = [by_name[f"g{index}"].operands[1].owner for index in (0, 2, 4)]
    assert not isinstance(read[0], Operation)
    assert read[1:] == [first, second]
