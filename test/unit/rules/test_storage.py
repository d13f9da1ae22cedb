"""The size of a type in bytes, and what the regions of loops and branches store."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from recompute.mlir_io.parser import parse_module
from recompute.rules.buffers import carried_values, region_storage, type_bytes

BYTES = {
    "f32": 4,
    "i1": 1,
    "i4": 1,
    "i17": 3,
    "f80": 10,
    "index": 8,
    "complex<f32>": 8,
    "tensor<f32>": 4,
    "tensor<2x3xi1>": 6,
    "tensor<5xindex>": 40,
    "tensor<3xcomplex<f64>>": 48,
    "vector<4xbf16>": 8,
    "tensor<0x3xf32>": 0,
    "tensor<?x3xf32>": None,
    "!recompute.token": 0,
    "!stablehlo.token": 0,
    "!mhlo.token": 0,
    "!acme.tile": None,
    "tensor<4x!acme.tile>": None,
}


@pytest.mark.parametrize("type_", BYTES)
def test_types_have_the_expected_bytes(type_: str) -> None:
    (function,) = parse_module(f"func.func private @f({type_})", "f.mlir").ops
    assert isinstance(function, FuncOp)
    (argument,) = function.function_type.inputs
    assert type_bytes(argument) == BYTES[type_]


LOOPS = """
func.func @f(%x: tensor<4xf32>, %n: i32, %p: tensor<i1>, %w: tensor<i32>) {
  %a, %b = scf.while (%i = %n, %y = %x) : (i32, tensor<4xf32>) -> (tensor<4xf32>, i1) {
    %more = arith.constant true
    scf.condition(%more) %y, %more : tensor<4xf32>, i1
  } do {
  ^bb0(%z: tensor<4xf32>, %q: i1):
    scf.yield %n, %z : i32, tensor<4xf32>
  }
  %c = "stablehlo.case"(%w) ({
    stablehlo.return %x : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  %d = stablehlo.while(%v = %x) : tensor<4xf32>
  cond {
    stablehlo.return %p : tensor<i1>
  } do {
    stablehlo.return %v : tensor<4xf32>
  }
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  func.return
}
"""
# What the arguments of each region stand for, and from which operand on its terminator hands values on.
STORED = {
    "scf.while": [("operands", 1), ("results", 0)],
    "stablehlo.case": [("nothing", 0)] * 3,
    "stablehlo.while": [("results", None), ("results", 0)],
    "stablehlo.reduce": [],
}


@pytest.mark.parametrize("name", STORED)
def test_region_storage_and_carried_values(name: str) -> None:
    (op,) = [op for op in parse_module(LOOPS, "f.mlir").walk() if op.name == name]
    result = region_storage(op)
    values = {"operands": tuple(op.operands), "results": tuple(op.results), "nothing": ()}
    assert [region.hands_on for region in result] == [hands_on for _, hands_on in STORED[name]]
    assert [carried_values(op, region) for region in result] == [values[carry] for carry, _ in STORED[name]]
