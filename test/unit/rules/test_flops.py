"""FLOPs as XLA counts them."""

from __future__ import annotations

import pytest

from recompute.dialects.parser import parse_module
from recompute.rules.flops import flops

CASES = {
    "%r = stablehlo.sine %a : tensor<4x8xf32>": 32,
    "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
    "(tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>": 2 * 4 * 16 * 8,
    "%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>": 0,
    "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : "
    "(tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>": 32,
    "%r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} "
    "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
    "(tensor<2x10x3xf32>, tensor<5x3x7xf32>) -> tensor<2x6x7xf32>": 2 * (2 * 6 * 7) * (5 * 3),
    "%r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x16xf32>) outs(%c : tensor<4x16xf32>) "
    "-> tensor<4x16xf32>": 2 * 4 * 16 * 8,
    "%r = linalg.fill ins(%s : f32) outs(%c : tensor<4x16xf32>) -> tensor<4x16xf32>": 0,
    "%r = math.fma %a, %a, %a : tensor<4x8xf32>": 64,
    "%r = arith.constant dense<1.0> : tensor<4x8xf32>": 0,
    # Three iterations, with the bounds in sight.
    "%l = arith.constant 1 : index\n %u = arith.constant 8 : index\n %t = arith.constant 3 : index\n"
    "%r = scf.for %i = %l to %u step %t iter_args(%v = %a) -> (tensor<4x8xf32>) {\n"
    "%w = math.exp %v : tensor<4x8xf32>\n scf.yield %w : tensor<4x8xf32>\n }": 3 * 32,
    "%r = scf.for %i = %n to %n step %n iter_args(%v = %a) -> (tensor<4x8xf32>) {\n"
    "%w = math.exp %v : tensor<4x8xf32>\n scf.yield %w : tensor<4x8xf32>\n }": 32,
}


@pytest.mark.parametrize("line", CASES)
def test_flops(line: str) -> None:
    arguments = (
        "%a: tensor<4x8xf32>, %b: tensor<8x16xf32>, %z: tensor<f32>, %x: tensor<2x10x3xf32>, %k: tensor<5x3x7xf32>, "
        "%c: tensor<4x16xf32>, %s: f32, %n: index"
    )
    module = parse_module(f"func.func @f({arguments}) {{\n  {line}\n  func.return\n}}\n")
    (op,) = [op for op in module.walk() if any(result.name_hint == "r" for result in op.results)]
    assert flops(op) == CASES[line]
