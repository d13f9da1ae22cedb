"""Kernels of tensor, against numpy."""

# JAX's types say little about lambdas, numpy's about ufuncs.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import numpy as np
import pytest

from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal
from recompute.test.unit.interpreters.evaluate import evaluate

X = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.mark.parametrize(
    ("body", "result", "expected"),
    [
        ("%r = tensor.extract_slice %a[1, 2] [2, 3] [2, 1] : T to tensor<2x3xf32>", "tensor<2x3xf32>", X[1:4:2, 2:5]),
        ("%r = tensor.extract_slice %a[1, 0] [1, 6] [1, 1] : T to tensor<6xf32>", "tensor<6xf32>", X[1]),
        ("%r = tensor.collapse_shape %a [[0, 1]] : T into tensor<24xf32>", "tensor<24xf32>", X.reshape(24)),
        (
            "%r = tensor.expand_shape %a [[0, 1], [2]] output_shape [2, 2, 6] : T into tensor<2x2x6xf32>",
            "tensor<2x2x6xf32>",
            X.reshape(2, 2, 6),
        ),
        ("%r = tensor.cast %a : T to T", "tensor<4x6xf32>", X),
        (
            '%r = "tensor.concat"(%a, %a) {dim = 1 : i64} : (T, T) -> tensor<4x12xf32>',
            "tensor<4x12xf32>",
            np.concatenate([X, X], 1),
        ),
        (
            "%c = arith.constant 2 : index\n%v = tensor.extract %a[%c, %c] : T\n%r = tensor.splat %v : tensor<3xf32>",
            "tensor<3xf32>",
            np.full(3, X[2, 2]),
        ),
        (
            "%c = arith.constant 2 : index\n%v = tensor.extract %a[%c, %c] : T\n"
            "%r = tensor.from_elements %v, %v : tensor<2x1xf32>",
            "tensor<2x1xf32>",
            np.full((2, 1), X[2, 2]),
        ),
        (
            "%c = arith.constant 1 : index\n%d = tensor.dim %a, %c : T\n%r = tensor.from_elements %d : tensor<1xindex>",
            "tensor<1xindex>",
            np.array([6]),
        ),
        (
            "%s = arith.constant dense<[3, 8]> : tensor<2xindex>\n"
            "%r = tensor.reshape %a(%s) : (T, tensor<2xindex>) -> tensor<3x8xf32>",
            "tensor<3x8xf32>",
            X.reshape(3, 8),
        ),
    ],
)
def test_tensor_operations_equal_numpy(body: str, result: str, expected: Array) -> None:
    np.testing.assert_array_equal(evaluate(body, result, X), expected)


def test_insert_does_not_modify_operand() -> None:
    body = """%c = arith.constant 1 : index
      %v = arith.constant 9.0 : f32
      %b = tensor.insert %v into %a[%c, %c] : T
      %p = tensor.extract_slice %b[0, 0] [2, 2] [1, 1] : T to tensor<2x2xf32>
      %q = tensor.insert_slice %p into %a[%c, 2] [2, 2] [1, 3] : tensor<2x2xf32> into T
      %r = arith.addf %q, %b : T"""
    inserted, second = X.copy(), X.copy()
    inserted[1, 1] = 9
    second[1:3, 2:6:3] = inserted[:2, :2]
    np.testing.assert_array_equal(evaluate(body, "tensor<4x6xf32>", X), inserted + second)


@pytest.mark.parametrize("yielded", ["%v", "%k"])
def test_padding_equals_numpy(yielded: str) -> None:
    body = f"""%v = arith.constant 9 : index
      %r = "tensor.pad"(%a) <{{operandSegmentSizes = array<i32: 1, 0, 0>, static_low = array<i64: 1>,
        static_high = array<i64: 2>}}> ({{
      ^bb0(%i: index):
        %k = arith.muli %i, %v : index
        tensor.yield {yielded} : index
      }}) : (tensor<2xindex>) -> tensor<5xindex>"""
    text = f"func.func @main(%a: tensor<2xindex>) -> tensor<5xindex> {{\n{body}\nreturn %r : tensor<5xindex>\n}}"
    (result,) = execute(function_named(parse_module(text, "f.mlir")), [np.array([5, 6])])
    assert result.tolist() == ([9, 5, 6, 9, 9] if yielded == "%v" else [0, 5, 6, 27, 36])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%c = arith.constant 4 : index\n%v = tensor.extract %a[%c, %c] : T\n%r = tensor.splat %v : T",
            "index 4 is out",
        ),
        ("%c = arith.constant -1 : index\n%v = tensor.extract %a[%c, %c] : T\n%r = tensor.splat %v : T", "index -1 is"),
        (
            "%c = arith.constant 3 : index\n%r = tensor.extract_slice %a[%c, 0] [4, 6] [1, 1] : T to T",
            "the slice from 3 to 6 is out of bounds for the extent 4",
        ),
    ],
)
def test_out_of_range_access_is_refused(body: str, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        evaluate(body, "tensor<4x6xf32>", X)
