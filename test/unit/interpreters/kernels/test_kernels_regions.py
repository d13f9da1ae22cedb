"""Kernels of operations whose region combines elements: accumulation in a wider type, and indices out of bounds."""

from __future__ import annotations

import numpy as np
import pytest

from recompute.interpreters.kernels.arrays import Array
from recompute.support.diagnostics import Refusal
from recompute.test.unit.interpreters.evaluate import array, evaluate

# bf16 has eight digits: 257 is not among its numbers.
ONES = array([256, 1, 1, 1], "bf16")


def region(element: str, combine: str = "stablehlo.add %x, %y") -> str:
    scalar = f"tensor<{element}>"
    return f"""({{ ^bb0(%x: {scalar}, %y: {scalar}):
        %z = {combine} : {scalar}
        stablehlo.return %z : {scalar} }})"""


@pytest.mark.parametrize(("element", "expected"), [("f32", 259.5), ("bf16", 260.0), ("f64", 259.5)])
@pytest.mark.parametrize("combine", ["stablehlo.add %x, %y", "stablehlo.add %y, %x"])
def test_sum_accumulates_in_the_type_of_the_region(combine: str, element: str, expected: float) -> None:
    body = f"""%r = "stablehlo.reduce"(%a, %b) <{{dimensions = array<i64: 0>}}> {region(element, combine)}
        : (T, tensor<bf16>) -> tensor<{element}>"""
    results = evaluate(body, f"tensor<{element}>", ONES, array(0.5, "bf16"))
    assert float(results) == expected


def test_fold_accumulates_in_a_wider_type() -> None:
    """The fold `2 x + y` of 100 and 100, starting at one, is computed in i32, since the result exceeds i8."""
    combine = "stablehlo.add %x, %x : tensor<i32> %z = stablehlo.add %w, %y"
    body = f"""%r = "stablehlo.reduce"(%a, %b) <{{dimensions = array<i64: 0>}}>
        {region("i32", combine).replace("%z = ", "%w = ", 1)} : (T, tensor<i8>) -> tensor<i32>"""
    assert int(evaluate(body, "tensor<i32>", array([100, 100], "i8"), array(1, "i8"))) == 304


def test_windows_accumulate_in_a_wider_type() -> None:
    body = f"""%r = "stablehlo.reduce_window"(%a, %b) <{{window_dimensions = array<i64: 2>,
        padding = dense<[[0, 1]]> : tensor<1x2xi64>}}> {region("f32")} : (T, tensor<bf16>) -> tensor<4xf32>"""
    # The initial value pads, and is where each window starts.
    results = evaluate(body, "tensor<4xf32>", ONES, array(0.5, "bf16"))
    assert results.tolist() == [257.5, 2.5, 2.5, 2.0]


def test_scatter_accumulates_in_a_wider_type() -> None:
    body = f"""%r = "stablehlo.scatter"(%a, %b, %c) <{{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {region("f32")}
        : (T, tensor<3x1xi32>, tensor<3xbf16>) -> tensor<4xf32>"""
    results = evaluate(body, "tensor<4xf32>", ONES, array([[0], [0], [3]], "i32"), array([1, 0.5, 0.5], "bf16"))
    # What nothing is added to is of the wider type too.
    assert results.dtype == np.float32 and results.tolist() == [257.5, 1.0, 1.0, 1.5]


def test_select_and_scatter_accumulates_in_a_wider_type() -> None:
    body = f"""%r = "stablehlo.select_and_scatter"(%a, %b, %c) <{{window_dimensions = array<i64: 2>}}>
        ({{ ^bb0(%x: tensor<bf16>, %y: tensor<bf16>):
            %z = stablehlo.compare GE, %x, %y : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
            stablehlo.return %z : tensor<i1> }}, {region("f32")[1:-1]})
        : (T, tensor<3xbf16>, tensor<bf16>) -> tensor<4xf32>"""
    results = evaluate(body, "tensor<4xf32>", ONES, array([256, 1, 0.5], "bf16"), array(0.5, "bf16"))
    assert results.tolist() == [256.5, 1.5, 1.0, 0.5]


def test_region_on_tensors_is_refused() -> None:
    body = """%r = "stablehlo.reduce"(%a, %b) <{dimensions = array<i64: 0>}> ({
      ^bb0(%x: tensor<2xf32>, %y: tensor<2xf32>):
        %z = stablehlo.add %x, %y : tensor<2xf32>
        stablehlo.return %z : tensor<2xf32> }) : (T, tensor<2xf32>) -> tensor<2xf32>"""
    with pytest.raises(Refusal, match=r"2:6: error: stablehlo.reduce cannot be executed: its region combines tensors"):
        evaluate(body, "tensor<2xf32>", array([[1, 2], [3, 4]], "f32"), array([0, 0], "f32"))


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ([1, 1], [[0, 0, 0], [0, 1, 2], [0, 3, 4]]),
        ([2, 1], [[0, 0, 0], [0, 0, 0], [0, 1, 2]]),
        ([-1, 2], [[0, 0, 3], [0, 0, 0], [0, 0, 0]]),
        ([0, -1], [[2, 0, 0], [4, 0, 0], [0, 0, 0]]),
        ([3, 0], [[0, 0, 0], [0, 0, 0], [0, 0, 0]]),
        ([-2, -2], [[0, 0, 0], [0, 0, 0], [0, 0, 0]]),
    ],
)
def test_scatter_drops_only_elements_out_of_bounds(start: list[int], expected: Array) -> None:
    """Only the elements out of bounds are dropped, as the specification says; XLA drops the whole window."""
    body = f"""%r = "stablehlo.scatter"(%a, %b, %c) <{{scatter_dimension_numbers = #stablehlo.scatter<
        update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]>}}> {region("f32")}
        : (T, tensor<2xi32>, tensor<2x2xf32>) -> T"""
    updates = array([[1, 2], [3, 4]], "f32")
    results = evaluate(body, "tensor<3x3xf32>", array(np.zeros((3, 3)), "f32"), array(start, "i32"), updates)
    assert results.tolist() == expected
