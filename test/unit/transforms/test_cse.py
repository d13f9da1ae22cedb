"""What `cse` counts, and that it leaves nothing dead behind. The rules are in test/filecheck/transforms/cse.mlir."""

from __future__ import annotations

from recompute.dialects.parser import parse_module
from recompute.rules.names import name_of
from recompute.transforms.cse import cse

T = "tensor<8xf32>"
STEP = f"""
func.func @f(%x: {T}) -> ({T}, {T}) {{
  %dead = stablehlo.cosine %x : {T}
  %deader = stablehlo.negate %dead : {T}
  %a = stablehlo.sine %x : {T}
  %b = stablehlo.sine %x : {T}
  %c = stablehlo.tanh %a : {T}
  %d = stablehlo.tanh %b : {T}
  func.return %c, %d : {T}, {T}
}}
"""


def test_cse_says_how_many_operations_went() -> None:
    module = parse_module(STEP)
    assert cse(module) == 4
    assert [name_of(op) for op in module.walk()][2:] == ["stablehlo.sine", "stablehlo.tanh", "func.return"]
    assert cse(module) == 0
