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
}


@pytest.mark.parametrize("line", CASES)
def test_flops(line: str) -> None:
    arguments = (
        "%a: tensor<4x8xf32>, %b: tensor<8x16xf32>, %z: tensor<f32>, %x: tensor<2x10x3xf32>, %k: tensor<5x3x7xf32>"
    )
    module = parse_module(f"func.func @f({arguments}) {{\n  {line}\n  func.return\n}}\n")
    (op,) = [op for op in module.walk() if any(result.name_hint == "r" for result in op.results)]
    assert flops(op) == CASES[line]
