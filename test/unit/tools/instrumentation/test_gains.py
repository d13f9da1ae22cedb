"""The remark on the gain of a run counts copies in loops over all iterations."""

from __future__ import annotations

from recompute.mlir_io.parser import parse_module
from recompute.tools.instrumentation.gains import totals_of

LOOP = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %n, %r = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %eight = stablehlo.constant dense<8> : tensor<i32>
    %less = stablehlo.compare LT, %i, %eight : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %a = stablehlo.add %h, %h : tensor<4xf32>
    %b = stablehlo.add %a, %a {copy} : tensor<4xf32>
    stablehlo.return %next, %b : tensor<i32>, tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
"""


def test_copies_in_loops_count_in_every_iteration() -> None:
    plain = totals_of(parse_module(LOOP.replace("{copy}", ""), "step.mlir"))["main"]
    copied = totals_of(parse_module(LOOP.replace("{copy}", "{recompute.copy = 1 : i64}"), "step.mlir"))["main"]
    assert (plain.copies, plain.copied_flops) == (0, 0)
    assert (copied.copies, copied.copied_flops) == (1, 8 * 4)
    assert plain.flops == copied.flops and plain.flops >= 8 * (4 + 4)
