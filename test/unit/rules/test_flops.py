"""FLOPs per operation, with XLA's conventions."""

from __future__ import annotations

from random import Random

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from recompute.dialects.stablehlo.windows import DimWindow
from recompute.mlir_io.parser import parse_module
from recompute.rules.flop_counts import window_hits
from recompute.rules.flops import Work, flops, work

CASES = {
    "%r = stablehlo.sine %a : tensor<4x8xf32>": 32,
    "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
    "(tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>": 2 * 4 * 16 * 8,
    "%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>": 0,
    # Of four rows the first is there already.
    "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : "
    "(tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>": 24,
    "%r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} "
    "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
    "(tensor<2x10x3xf32>, tensor<5x3x7xf32>) -> tensor<2x6x7xf32>": 2 * (2 * 6 * 7) * (5 * 3),
    "%r = stablehlo.convolution(%x, %o) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} "
    "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
    "(tensor<2x10x3xf32>, tensor<5x3x1xf32>) -> tensor<2x6x1xf32>": 2 * (2 * 6 * 1) * (5 * 3),
    "%r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x16xf32>) outs(%c : tensor<4x16xf32>) "
    "-> tensor<4x16xf32>": 2 * 4 * 16 * 8,
    "%r = linalg.matmul ins(%e, %g : tensor<4x0xf32>, tensor<0x16xf32>) outs(%c : tensor<4x16xf32>) "
    "-> tensor<4x16xf32>": 0,
    # xDSL has no class for it and does not know its loops: the largest operand counts.
    '%r = "linalg.batch_matmul"(%a, %b, %c) ({\n ^bb0(%u: f32, %v: f32, %w: f32):\n %y = arith.mulf %u, %v : f32\n'
    "linalg.yield %y : f32\n }) : (tensor<4x8xf32>, tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>": 128,
    "%r = linalg.fill ins(%s : f32) outs(%c : tensor<4x16xf32>) -> tensor<4x16xf32>": 0,
    "%r = math.fma %a, %a, %a : tensor<4x8xf32>": 64,
    "%r = arith.constant dense<1.0> : tensor<4x8xf32>": 0,
    "%r = stablehlo.convert %a : (tensor<4x8xf32>) -> tensor<4x8xbf16>": 32,
    # The dearer of two branches counts.
    '%r = "stablehlo.if"(%p) ({\n %u = stablehlo.sine %a : tensor<4x8xf32>\n'
    "stablehlo.return %u : tensor<4x8xf32>\n }, {\n %v = stablehlo.add %a, %a : tensor<4x8xf32>\n"
    " %w = stablehlo.add %v, %a : tensor<4x8xf32>\n stablehlo.return %w : tensor<4x8xf32>\n }) "
    ": (tensor<i1>) -> tensor<4x8xf32>": 64 + 32,
}


@pytest.mark.parametrize("line", CASES)
def test_flops_follow_the_conventions_of_xla(line: str) -> None:
    arguments = (
        "%a: tensor<4x8xf32>, %b: tensor<8x16xf32>, %z: tensor<f32>, %x: tensor<2x10x3xf32>, %k: tensor<5x3x7xf32>, "
        "%c: tensor<4x16xf32>, %s: f32, %n: index, %o: tensor<5x3x1xf32>, %e: tensor<4x0xf32>, %g: tensor<0x16xf32>, "
        "%p: tensor<i1>"
    )
    module = parse_module(f"func.func @f({arguments}) {{\n  {line}\n  func.return\n}}\n")
    assert flops(result_operation(module)) == CASES[line]


def test_transcendentals_are_separate_and_one_flop_each() -> None:
    line = "%r = chlo.cosh %a : tensor<4x8xbf16> -> tensor<4x8xbf16>"
    module = parse_module(f"func.func @f(%a: tensor<4x8xbf16>) {{\n {line}\n return\n}}")
    result = work(result_operation(module))
    assert (
        result == Work(flops=5 * 32, transcendentals=2 * 32)
        and flops(result_operation(module)) == result.together == 7 * 32
    )


@pytest.mark.parametrize("seed", range(300))
def test_window_meetings_match_enumeration(seed: int) -> None:
    draw = Random(seed).randint
    size, stride, base, dilation = (draw(1, 5) for _ in range(4))
    window = DimWindow(size, stride, draw(-3, 6), draw(-3, 6), base, dilation)
    extent, places = draw(0, 9), draw(0, 9)
    lies = {index * window.base_dilation for index in range(extent)}
    under = [
        place * window.stride + point * window.window_dilation - window.low
        for place in range(places)
        for point in range(window.size)
    ]
    assert window_hits(window, extent, places) == sum(at in lies for at in under)


def result_operation(module: ModuleOp) -> Operation:
    (op,) = [op for op in module.walk() if any(result.name_hint == "r" for result in op.results)]
    return op


# Bounds and step of a loop, and how often its body counts: once where they are not in sight, or make no sense.
TRIPS = {
    ("1", "8", "3"): 3,
    ("0", "5", "1"): 5,
    ("0", "6", "3"): 2,
    ("8", "1", "1"): 0,
    ("%n", "%n", "%n"): 1,
    ("%n", "4", "1"): 1,
    ("0", "%n", "1"): 1,
    ("0", "4", "%n"): 1,
    ("0", "4", "0"): 1,
}


@pytest.mark.parametrize("bounds", TRIPS)
def test_trip_counts_are_derived_from_the_loop(bounds: tuple[str, str, str]) -> None:
    constants = [(f"%b{i}", bound) for i, bound in enumerate(bounds) if bound != "%n"]
    low, high, step = (bound if bound == "%n" else f"%b{i}" for i, bound in enumerate(bounds))
    module = parse_module(f"""
func.func @f(%a: tensor<4x8xf32>, %n: index) {{
  {" ".join(f"{name} = arith.constant {bound} : index" for name, bound in constants)}
  %r = scf.for %i = {low} to {high} step {step} iter_args(%v = %a) -> (tensor<4x8xf32>) {{
    %w = math.exp %v : tensor<4x8xf32>
    scf.yield %w : tensor<4x8xf32>
  }}
  func.return
}}""")
    assert flops(result_operation(module)) == TRIPS[bounds] * 32
