"""A budget tries more than one loop schedule, but only one for a module without loops."""

from __future__ import annotations

from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import SMALLEST_STACKS, UNCUT
from recompute.options.recompute_options import DEFAULT_OPTIONS
from recompute.search.loop_choices import loop_choices
from recompute.test.unit.transforms.test_segment_budgets import STEP

LOOP = """
func.func @step(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %w = stablehlo.sine %v : tensor<4xf32>
    stablehlo.return %next, %w : tensor<i32>, tensor<4xf32>
  }
  func.return %r#1 : tensor<4xf32>
}
"""


def test_module_without_loops_has_one_schedule() -> None:
    assert loop_choices(parse_module(STEP, "step"), DEFAULT_OPTIONS) == (UNCUT,)


def test_module_with_a_loop_has_several_schedules() -> None:
    assert loop_choices(parse_module(LOOP, "step"), DEFAULT_OPTIONS) == (UNCUT, SMALLEST_STACKS)
