"""Constraints of gather and scatter, each violated separately."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import VerifyException

from recompute.mlir_io.parser import parse_module
from recompute.test.mlir_judge import Judge
from recompute.test.unit.dialects.stablehlo.constraints import Template

GATHER = Template(
    '%r = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = {offsets},'
    " collapsed_slice_dims = {collapsed}, operand_batching_dims = {batching},"
    " start_indices_batching_dims = {rows}, start_index_map = {map}, index_vector_dim = {vector}>,"
    " slice_sizes = array<i64: {sizes}>}> : ({operand}, {indices}) -> {result}",
    {
        "offsets": "[2, 3]",
        "collapsed": "[1]",
        "batching": "[0]",
        "rows": "[0]",
        "map": "[1, 2]",
        "vector": "2",
        "sizes": "1, 1, 4, 5",
        "operand": "tensor<3x7x8x9xf32>",
        "indices": "tensor<3x6x2xi32>",
        "result": "tensor<3x6x4x5xf32>",
    },
    ("operand", "indices"),
)


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("I2", {"indices": "tensor<3x6x2xf32>"}, "elements of type f32, expected integers"),
        ("C1", {"offsets": "[2]"}, "there are 3 offset_dims and collapsed_slice_dims and operand_batching_dims"),
        ("C2", {"vector": "4"}, "index_vector_dim is 4, expected 0 to 3"),
        ("C2", {"vector": "-1"}, "index_vector_dim is -1"),
        ("C3", {"map": "[1]"}, r"an index vector has shape \[2\], expected \[1\]"),
        ("C3", {"vector": "3"}, r"an index vector has shape \[1\], expected \[2\]"),
        ("C4", {"offsets": "[3, 2]"}, r"offset_dims \[3, 2\] must be in ascending order"),
        ("C4", {"offsets": "[2, 2]"}, "must be distinct"),
        ("C5", {"offsets": "[2, 4]"}, r"offset_dims \[2, 4\] must be non-negative and less than rank 4"),
        ("C5", {"offsets": "[-1, 2]"}, "must be non-negative and less than rank 4"),
        ("C6", {"collapsed": "[0]"}, "collapsed_slice_dims and operand_batching_dims .* must be distinct"),
        ("C7", {"collapsed": "[2, 1]", "offsets": "[2]"}, "must be in ascending order"),
        ("C8", {"collapsed": "[4]"}, r"collapsed_slice_dims \[4\] must be non-negative and less than rank 4"),
        ("C8", {"collapsed": "[-1]"}, "must be non-negative and less than rank 4"),
        ("C9", {"sizes": "1, 2, 4, 5"}, r"slice_sizes are \[2\] along collapsed_slice_dims \[1\]"),
        ("C10", {"batching": "[3, 0]", "offsets": "[2]"}, "must be in ascending order"),
        ("C11", {"batching": "[4]"}, r"operand_batching_dims \[4\] must be non-negative and less than rank"),
        ("C12", {"sizes": "2, 1, 4, 5"}, r"slice_sizes are \[2\] along operand_batching_dims \[0\]"),
        ("C13", {"rows": "[0, 0]"}, "start_indices_batching_dims .* must be distinct"),
        ("C14", {"rows": "[3]"}, r"start_indices_batching_dims \[3\] must be non-negative and less than rank 3"),
        ("C14", {"rows": "[-1]"}, "must be non-negative and less than rank 3"),
        ("C15", {"rows": "[2]"}, "start_indices_batching_dims must not contain index_vector_dim 2"),
        ("C16", {"rows": "[0, 1]"}, "there are 2 start_indices_batching_dims, expected 1"),
        ("C17", {"rows": "[1]"}, r"the part along operand_batching_dims has shape \[3\], expected \[6\]"),
        ("C18", {"map": "[0, 2]"}, "start_index_map and operand_batching_dims .* must be distinct"),
        ("C18", {"map": "[1, 1]"}, "must be distinct"),
        ("C19", {"map": "[1, 4]"}, r"start_index_map \[1, 4\] must be non-negative and less than rank 4"),
        ("C19", {"map": "[-2, 1]"}, "must be non-negative and less than rank 4"),
        ("C20", {"sizes": "1, 1, 4"}, "there are 3 slice_sizes, expected 4"),
        ("C21", {"sizes": "1, 1, 4, 10"}, "a slice has size 10, more than the extent 9"),
        ("C21", {"sizes": "1, 1, -4, 5"}, "a slice has size -4, but sizes must not be negative"),
        ("C21", {"sizes": "1, 1, -9223372036854775808, 5"}, "must not be negative"),
        ("C22", {"result": "tensor<3x6x5x4xf32>"}, r"expected \[3, 6, 4, 5\]"),
        ("C22", {"indices": "tensor<3x?x2xi32>", "result": "tensor<3x6x5x5xf32>"}, r"expected \[3, \?, 4, 5\]"),
        ("C23", {"result": "tensor<3x6x4x5xf64>"}, "elements of type f64, expected f32"),
    ],
)
def test_gather_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    GATHER.refuse(label, words, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"operand": "tensor<?x7x?x9xf32>"},
        {"indices": "tensor<?x?x?xui16>"},
        {"result": "tensor<?x6x4x?xf32>"},
        {"map": "[1]", "indices": "tensor<3x6xi32>"},
        {"sizes": "1, 0, 4, 5"},
    ],
)
def test_valid_gathers_are_accepted(changed: dict[str, str], judge: Judge) -> None:
    GATHER.accept(judge, **changed)


SCATTER = Template(
    '%r:2 = "stablehlo.scatter"(%0, %1, %2, %3, %4) <{scatter_dimension_numbers = #stablehlo.scatter<'
    "update_window_dims = {windows}, inserted_window_dims = {inserted}, input_batching_dims = {batching},"
    " scatter_indices_batching_dims = {rows}, scatter_dims_to_operand_dims = {map}, index_vector_dim = {vector}>}> ({\n"
    "^bb0({body}):\n  stablehlo.return {returned}\n"
    "}) : ({input}, {other}, {indices}, {update}, {more}) -> ({result}, {another})",
    {
        "windows": "[2, 3]",
        "inserted": "[1]",
        "batching": "[0]",
        "rows": "[0]",
        "map": "[1, 2]",
        "vector": "2",
        "body": "%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>",
        "returned": "%a, %d : tensor<f32>, tensor<i32>",
        "input": "tensor<3x7x8x9xf32>",
        "other": "tensor<3x7x8x9xi32>",
        "indices": "tensor<3x6x2xi32>",
        "update": "tensor<3x6x4x5xf32>",
        "more": "tensor<3x6x4x5xi32>",
        "result": "tensor<3x7x8x9xf32>",
        "another": "tensor<3x7x8x9xi32>",
    },
    ("input", "other", "indices", "update", "more"),
)
BY_DIMENSION = "!quant.uniform<i8:f32:0, {1.0:0, 2.0:0, 3.0:0}>"


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("I1", {"input": f"tensor<3x7x8x9x{BY_DIMENSION}>"}, "is quantized along a dimension"),
        ("I2", {"indices": "tensor<3x6x2xf32>"}, "expected integers"),
        ("I3", {"update": f"tensor<3x6x4x5x{BY_DIMENSION}>"}, "is quantized along a dimension"),
        ("C1", {"other": "tensor<3x7x8x8xi32>"}, r"an input has shape \[3, 7, 8, 8\], expected \[3, 7, 8, 9\]"),
        ("C2", {"inserted": "[1, 2]"}, "there are 5 update_window_dims and inserted_window_dims and input_batching"),
        ("C3", {"more": "tensor<3x6x4x6xi32>"}, r"an update has shape \[3, 6, 4, 6\], expected \[3, 6, 4, 5\]"),
        ("C4", {"windows": "[2]"}, "there are 4 dimensions of an update, expected 3"),
        (
            "C4",
            {"update": "tensor<3x6x9x5xf32>", "more": "tensor<3x6x9x5xi32>"},
            "a window has size 9, more than the extent",
        ),
        ("C4", {"update": "tensor<3x5x4x5xf32>", "more": "tensor<3x5x4x5xi32>"}, r"expected \[3, 6, 4, 5\]"),
        (
            "C6",
            {"update": "tensor<3x6x4x5xi32>"},
            "an update has elements of type i32, but they cannot be promoted to f32",
        ),
        ("C6", {"more": "tensor<3x6x4x5xi64>"}, "elements of type i64, but they cannot be promoted to i32"),
        ("C7", {"windows": "[3, 2]"}, "must be in ascending order"),
        ("C7", {"windows": "[2, 2]"}, "must be distinct"),
        ("C8", {"windows": "[2, 4]"}, r"update_window_dims \[2, 4\] must be non-negative and less than rank 4"),
        ("C8", {"windows": "[-1, 2]"}, "must be non-negative and less than rank 4"),
        ("C9", {"inserted": "[0]"}, "inserted_window_dims and input_batching_dims .* must be distinct"),
        ("C10", {"inserted": "[2, 1]", "batching": "[]"}, "must be in ascending order"),
        ("C11", {"inserted": "[4]"}, r"inserted_window_dims \[4\] must be non-negative and less than rank 4"),
        ("C11", {"inserted": "[-1]"}, "must be non-negative and less than rank 4"),
        ("C12", {"inserted": "[]", "batching": "[1, 0]"}, "must be in ascending order"),
        ("C13", {"batching": "[4]"}, r"input_batching_dims \[4\] must be non-negative and less than rank 4"),
        ("C14", {"rows": "[0, 0]"}, "scatter_indices_batching_dims .* must be distinct"),
        ("C15", {"rows": "[3]"}, r"scatter_indices_batching_dims \[3\] must be non-negative and less than rank 3"),
        ("C16", {"rows": "[2]"}, "scatter_indices_batching_dims must not contain index_vector_dim 2"),
        ("C17", {"rows": "[0, 1]"}, "there are 2 scatter_indices_batching_dims, expected 1"),
        ("C18", {"rows": "[1]"}, r"the part along input_batching_dims has shape \[3\], expected \[6\]"),
        ("C19", {"map": "[1]"}, r"an index vector has shape \[2\], expected \[1\]"),
        ("C20", {"map": "[0, 2]"}, "scatter_dims_to_operand_dims and input_batching_dims .* must be distinct"),
        ("C21", {"map": "[1, 4]"}, r"scatter_dims_to_operand_dims \[1, 4\] must be non-negative and less than rank 4"),
        ("C22", {"vector": "4"}, "index_vector_dim is 4, expected 0 to 3"),
        ("C22", {"vector": "-1"}, "index_vector_dim is -1"),
        ("C23", {"body": "%a: tensor<f32>, %d: tensor<i32>"}, "the number of arguments of the region is 2, expected 4"),
        ("C23", {"returned": "%a : tensor<f32>"}, "there are 1 values that the region returns, expected 2"),
        ("C23", {"returned": "%d, %a : tensor<i32>, tensor<f32>"}, "one of the arguments of the region has type"),
        (
            "C23",
            {"input": "tensor<3x7x8x9xi32>"},
            "an input has elements of type i32, but they cannot be promoted to f32",
        ),
        (
            "C23",
            {
                "body": "%a: tensor<2xf32>, %b: tensor<i32>, %c: tensor<2xf32>, %d: tensor<i32>",
                "returned": "%a, %d : tensor<2xf32>, tensor<i32>",
            },
            "the region must take scalars, not tensor<2xf32>",
        ),
        ("C24", {"result": "tensor<3x7x8x8xf32>"}, r"a result has shape \[3, 7, 8, 8\], expected \[3, 7, 8, 9\]"),
        ("C25", {"another": "tensor<3x7x8x9xi64>"}, "a result has elements of type i64, expected i32"),
    ],
)
def test_scatter_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    SCATTER.refuse(label, words, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"input": "tensor<?x7x?x9xf32>", "result": "tensor<3x7x8x?xf32>"},
        {"indices": "tensor<?x?x?xui16>"},
        {"update": "tensor<?x6x?x5xf32>"},
        {"map": "[1]", "indices": "tensor<3x6xindex>"},
    ],
)
def test_valid_scatters_are_accepted(changed: dict[str, str], judge: Judge) -> None:
    SCATTER.accept(judge, **changed)


def test_scatter_body_may_use_wider_types(judge: Judge) -> None:
    SCATTER.accept(
        judge,
        body="%a: tensor<f64>, %b: tensor<i64>, %c: tensor<f64>, %d: tensor<i64>",
        returned="%a, %d : tensor<f64>, tensor<i64>",
        result="tensor<3x7x8x9xf64>",
        another="tensor<3x7x8x9xi64>",
    )


def test_scatter_without_inputs_is_rejected() -> None:
    text = (
        '"stablehlo.scatter"(%0) <{scatter_dimension_numbers = #stablehlo.scatter<>}> ({\n'
        "  stablehlo.return\n}) : ({indices}) -> ()"
    )
    with pytest.raises(VerifyException, match=r"^C5: there are no inputs, expected at least one"):
        parse_module(Template(text, {"indices": "tensor<0xi32>"}, ("indices",)).program()).verify()
