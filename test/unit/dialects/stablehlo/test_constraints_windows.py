"""Constraints of convolutions and window operations, each violated separately."""

from __future__ import annotations

import pytest

from recompute.test.mlir_judge import Judge
from recompute.test.unit.dialects.stablehlo.constraints import Template

CONVOLUTION = Template(
    "%r = stablehlo.convolution(%0, %1) dim_numbers = {labels}, window = {stride = {stride}, pad = {pad},"
    " lhs_dilate = {lhs}, rhs_dilate = {rhs}, reverse = {reverse}} {batch_group_count = {batches} : i64,"
    " feature_group_count = {features} : i64, precision_config = {precisions}} : ({image}, {kernel}) -> {result}",
    {
        "labels": "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
        "stride": "[2, 1]",
        "pad": "[[1, 0], [0, -1]]",
        "lhs": "[1, 2]",
        "rhs": "[2, 1]",
        "reverse": "[false, true]",
        "batches": "1",
        "features": "2",
        "precisions": "[]",
        "image": "tensor<4x8x8x6xf32>",
        "kernel": "tensor<3x3x3x10xf32>",
        "result": "tensor<4x3x12x10xf32>",
    },
    ("image", "kernel"),
)


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("C1", {"kernel": "tensor<3x3x10xf32>"}, "there are 3 dimensions of rhs, expected 4"),
        ("C2", {"stride": "[2]"}, "there are 1 window_strides, expected 2"),
        ("C3", {"stride": "[2, 0]"}, r"window_strides \[2, 0\] must be positive"),
        ("C4", {"pad": "[[1, 0]]"}, "padding has 1 pairs, expected 2"),
        ("C5", {"lhs": "[1, 2, 3]"}, "there are 3 lhs_dilation, expected 2"),
        ("C6", {"lhs": "[0, 1]"}, "lhs_dilation .* must be positive"),
        ("C7", {"rhs": "[1]"}, "there are 1 rhs_dilation, expected 2"),
        ("C8", {"rhs": "[2, -1]"}, "rhs_dilation .* must be positive"),
        ("C9", {"reverse": "[true]"}, "there are 1 window_reversal, expected 2"),
        (
            "C10",
            {"batches": "3", "features": "1"},
            r"extent 4 of dimension b of lhs is not a multiple of batch_group_count \(3\)",
        ),
        (
            "C11",
            {"features": "4"},
            r"the extent 6 of dimension f of lhs is not a multiple of feature_group_count \(4\)",
        ),
        (
            "C12",
            {"labels": "[b, 0, f]x[0, 1, i, o]->[b, 0, 1, f]"},
            "there are 3 dimension labels, expected one for each dimension of tensor<4x8x8x6xf32>",
        ),
        ("C14", {"kernel": "tensor<3x3x2x10xf32>"}, "the kernel has 2 input features, expected 6/2"),
        (
            "C15",
            {"features": "1", "batches": "4", "kernel": "tensor<3x3x6x10xf32>"},
            r"the extent 10 of dimension o of rhs is not a multiple of batch_group_count \(4\)",
        ),
        (
            "C16",
            {"kernel": "tensor<3x3x3x9xf32>"},
            r"the extent 9 of dimension o of rhs is not a multiple of feature_group_count \(2\)",
        ),
        (
            "C17",
            {"labels": "[b, 0, 1, f]x[0, i, o]->[b, 0, 1, f]"},
            "there are 3 dimension labels, expected one for each dimension of tensor<3x3x3x10xf32>",
        ),
        (
            "C19",
            {"labels": "[b, 0, 1, f]x[0, 1, i, o]->[b, f]"},
            "there are 2 dimension labels",
        ),
        ("C21", {"features": "0"}, r"feature_group_count \[0\] must be positive"),
        ("C22", {"batches": "0"}, r"batch_group_count \[0\] must be positive"),
        ("C22", {"batches": "-9223372036854775808"}, "must be positive"),
        ("C23", {"batches": "2"}, "feature_group_count is 2 and batch_group_count is 2, but one of them must be 1"),
        (
            "C24",
            {"precisions": "[#stablehlo<precision HIGH>, #stablehlo<precision HIGH>, #stablehlo<precision HIGH>]"},
            "",
        ),
        ("C25", {"result": "tensor<4x3x11x10xf32>"}, r"expected \[4, 3, 12, 10\]"),
        ("C25", {"image": "tensor<?x8x8x?xf32>", "result": "tensor<4x4x12x10xf32>"}, r"expected \[\?, 3, 12, 10\]"),
        ("C25", {"kernel": "tensor<3x0x3x10xf32>"}, r"the extents of the window \[3, 0\] must be positive"),
        (
            "C26",
            {"result": "tensor<4x3x12xf32>"},
            "there are 4 dimension labels",
        ),
        ("C27", {"kernel": "tensor<3x3x3x10xbf16>"}, "the kernel has elements of type bf16, expected f32"),
    ],
)
def test_convolution_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    CONVOLUTION.refuse(label, words, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"image": "tensor<?x?x8x?xf32>", "result": "tensor<4x9x12x10xf32>"},
        {"kernel": "tensor<?x3x?x?xf32>", "result": "tensor<?x?x12x?xf64>"},
        {"stride": "[]", "pad": "[]", "lhs": "[]", "rhs": "[]", "reverse": "[]", "result": "tensor<4x6x6x10xf32>"},
        {"precisions": "[#stablehlo<precision HIGH>]"},
        {"features": "1", "batches": "2", "kernel": "tensor<3x3x6x10xf32>", "result": "tensor<2x3x12x10xf32>"},
        {"pad": "[[-9, 0], [0, -1]]", "result": "tensor<4x0x12x10xf32>"},
        {"stride": "[9223372036854775807, 1]", "result": "tensor<4x1x12x10xf32>"},
    ],
)
def test_valid_convolutions_are_accepted(changed: dict[str, str], judge: Judge) -> None:
    CONVOLUTION.accept(judge, **changed)


REDUCE_WINDOW = Template(
    '%r:2 = "stablehlo.reduce_window"(%0, %1, %2, %3) <{window_dimensions = array<i64: {sizes}>,'
    " window_strides = array<i64: {stride}>, base_dilations = array<i64: {base}>,"
    " window_dilations = array<i64: {window}>, padding = dense<{pad}> : {pads}}> ({\n"
    "^bb0({body}):\n  stablehlo.return {returned}\n}) : ({one}, {other}, {init}, {zero}) -> ({result}, {another})",
    {
        "sizes": "2, 3",
        "stride": "2, 1",
        "base": "1, 2",
        "window": "3, 1",
        "pad": "[[1, 0], [0, -1]]",
        "pads": "tensor<2x2xi64>",
        "body": "%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>",
        "returned": "%a, %d : tensor<f32>, tensor<i32>",
        "one": "tensor<8x8xf32>",
        "other": "tensor<8x8xi32>",
        "init": "tensor<f32>",
        "zero": "tensor<i32>",
        "result": "tensor<3x12xf32>",
        "another": "tensor<3x12xi32>",
    },
    ("one", "other", "init", "zero"),
)


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("C2", {"other": "tensor<8x9xi32>"}, r"an input has shape \[8, 9\], expected \[8, 8\]"),
        (
            "C3",
            {"init": "tensor<i32>"},
            "an initial value has elements of type i32, but they cannot be promoted to f32",
        ),
        ("C3", {"init": "tensor<1xf32>"}, r"an initial value has shape \[1\], expected \[\]"),
        ("C4", {"sizes": "2"}, "there are 1 window_dimensions, expected 2"),
        ("C5", {"sizes": "2, 0"}, r"window_dimensions \[2, 0\] must be positive"),
        ("C6", {"stride": "1"}, "there are 1 window_strides, expected 2"),
        ("C7", {"stride": "1, 0"}, "window_strides .* must be positive"),
        ("C8", {"base": "1, 1, 1"}, "there are 3 base_dilations, expected 2"),
        ("C9", {"base": "1, -1"}, "base_dilations .* must be positive"),
        ("C10", {"window": "1"}, "there are 1 window_dilations, expected 2"),
        ("C11", {"window": "0, 1"}, "window_dilations .* must be positive"),
        ("C12", {"pad": "0", "pads": "tensor<3x2xi64>"}, "padding has 3 pairs, expected 2"),
        ("C12", {"pad": "0", "pads": "tensor<2x3xi64>"}, "padding must be a constant of type tensor<Nx2xi64>"),
        ("C12", {"pad": "0", "pads": "tensor<2x2xi32>"}, "padding must be a constant of type tensor<Nx2xi64>"),
        ("C12", {"pad": "0", "pads": "tensor<4xi64>"}, "padding must be a constant of type tensor<Nx2xi64>"),
        ("C13", {"one": "tensor<8x8xi32>"}, "an input has elements of type i32, but they cannot be promoted to f32"),
        ("C13", {"returned": "%a : tensor<f32>"}, "there are 1 values that the region returns, expected 2"),
        (
            "C13",
            {
                "body": "%a: tensor<7xf32>, %b: tensor<i32>, %c: tensor<7xf32>, %d: tensor<i32>",
                "returned": "%a, %d : tensor<7xf32>, tensor<i32>",
            },
            r"the region must take scalars, or tensors with the extents \[2, 3\], not tensor<7xf32>",
        ),
        ("C15", {"another": "tensor<3x11xi32>"}, r"a result has shape \[3, 11\], expected \[3, 12\]"),
        ("C16", {"result": "tensor<3x12xf64>"}, "a result has elements of type f64, expected f32"),
    ],
)
def test_reduce_window_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    REDUCE_WINDOW.refuse(label, words, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"one": "tensor<?x8xf32>", "result": "tensor<3x12xf32>", "another": "tensor<?x12xi32>"},
        {"pad": "", "pads": "tensor<0x2xi64>", "result": "tensor<3x13xf32>", "another": "tensor<3x13xi32>"},
        {"sizes": "9, 3", "result": "tensor<0x12xf32>", "another": "tensor<0x12xi32>"},
        {"sizes": "2305843009213693952, 3", "result": "tensor<0x12xf32>", "another": "tensor<0x12xi32>"},
        {
            "body": "%a: tensor<f64>, %b: tensor<i64>, %c: tensor<f64>, %d: tensor<i64>",
            "returned": "%a, %d : tensor<f64>, tensor<i64>",
            "result": "tensor<3x12xf64>",
            "another": "tensor<3x12xi64>",
        },
        {
            "body": "%a: tensor<3xf32>, %b: tensor<i32>, %c: tensor<3xf32>, %d: tensor<i32>",
            "returned": "%a, %d : tensor<3xf32>, tensor<i32>",
            "init": "tensor<3xf32>",
        },
    ],
)
def test_valid_reduce_windows_are_accepted(changed: dict[str, str], judge: Judge) -> None:
    REDUCE_WINDOW.accept(judge, **changed)


SELECT_AND_SCATTER = Template(
    '%r = "stablehlo.select_and_scatter"(%0, %1, %2) <{window_dimensions = array<i64: {sizes}>,'
    " window_strides = array<i64: {stride}>, padding = dense<{pad}> : {pads}}> ({\n"
    "^bb0({choice}):\n  %t = stablehlo.constant dense<true> : {truth}\n  stablehlo.return %t : {truth}\n"
    "}, {\n^bb0({body}):\n  stablehlo.return {returned}\n}) : ({operand}, {source}, {init}) -> {result}",
    {
        "sizes": "2, 3",
        "stride": "2, 1",
        "pad": "[[1, 0], [0, -1]]",
        "pads": "tensor<2x2xi64>",
        "choice": "%a: tensor<f32>, %b: tensor<f32>",
        "truth": "tensor<i1>",
        "body": "%c: tensor<f32>, %d: tensor<f32>",
        "returned": "%c : tensor<f32>",
        "operand": "tensor<8x8xf32>",
        "source": "tensor<4x5xf32>",
        "init": "tensor<f32>",
        "result": "tensor<8x8xf32>",
    },
    ("operand", "source", "init"),
)


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("C1", {"source": "tensor<4x5xf64>"}, "the source has elements of type f64, expected f32"),
        ("C2", {"source": "tensor<4x6xf32>"}, r"the source has shape \[4, 6\], expected \[4, 5\]"),
        (
            "C3",
            {"init": "tensor<i32>"},
            "the initial value has elements of type i32, but they cannot be promoted to f32",
        ),
        ("C3", {"init": "tensor<1xf32>"}, r"the initial value has shape \[1\], expected \[\]"),
        ("C4", {"sizes": "2"}, "there are 1 window_dimensions, expected 2"),
        ("C5", {"sizes": "0, 3"}, "window_dimensions .* must be positive"),
        ("C6", {"stride": "1"}, "there are 1 window_strides, expected 2"),
        ("C7", {"stride": "1, -2"}, "window_strides .* must be positive"),
        ("C8", {"pad": "0", "pads": "tensor<1x2xi64>"}, "padding has 1 pairs, expected 2"),
        ("C9", {"choice": "%a: tensor<f64>, %b: tensor<f64>"}, "one of the arguments of select has type tensor<f64>"),
        ("C9", {"choice": "%a: tensor<f32>"}, "the number of arguments of select is 1, expected 2"),
        ("C9", {"truth": "tensor<1xi1>"}, "one of the values that select returns has type tensor<1xi1>"),
        (
            "C10",
            {"body": "%c: tensor<i32>, %d: tensor<i32>", "returned": "%c : tensor<i32>"},
            "the source has elements of type f32, but they cannot be promoted to i32",
        ),
        (
            "C10",
            {"body": "%c: tensor<2xf32>, %d: tensor<2xf32>", "returned": "%c : tensor<2xf32>"},
            "the region must take scalars",
        ),
        ("C11", {"result": "tensor<8x7xf32>"}, r"the result has shape \[8, 7\], expected \[8, 8\]"),
        ("C12", {"result": "tensor<8x8xf64>"}, "the result has elements of type f64, expected f32"),
    ],
)
def test_select_and_scatter_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    SELECT_AND_SCATTER.refuse(label, words, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"operand": "tensor<?x8xf32>", "source": "tensor<9x5xf32>", "result": "tensor<8x8xf32>"},
        {
            "body": "%c: tensor<f64>, %d: tensor<f64>",
            "returned": "%c : tensor<f64>",
            "result": "tensor<8x8xf64>",
            "init": "tensor<f64>",
        },
    ],
)
def test_valid_pooling_gradients_are_accepted(changed: dict[str, str], judge: Judge) -> None:
    SELECT_AND_SCATTER.accept(judge, **changed)
