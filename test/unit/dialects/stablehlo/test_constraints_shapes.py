"""Constraints of operations that take a shape as an operand, each violated separately."""

from __future__ import annotations

import pytest

from recompute.test.mlir_judge import Judge
from recompute.test.unit.dialects.stablehlo.constraints import Template

BROADCAST = Template(
    "{shape}%r = stablehlo.dynamic_broadcast_in_dim %0, {name}, dims = {dims}{more}"
    " : ({operand}, {numbers}) -> {result}",
    {
        "shape": "",
        "name": "%1",
        "dims": "[1]",
        "more": "",
        "operand": "tensor<8xf32>",
        "numbers": "tensor<2xi64>",
        "result": "tensor<?x8xf32>",
    },
    ("operand", "numbers"),
)
STATED = {"shape": "%n = stablehlo.constant dense<[4, 8]> : tensor<2xi64>\n  ", "name": "%n"}


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("I2", {"numbers": "tensor<?xi64>"}, "expected a static number of elements"),
        ("C1", {"result": "tensor<?x8xi32>"}, "elements of type i32, expected f32"),
        ("C2", {"dims": "[0, 1]"}, "there are 2 broadcast_dimensions, expected 1"),
        ("C3", {"dims": "[2]"}, r"broadcast_dimensions \[2\] must be non-negative and less than rank 2"),
        ("C4", {"operand": "tensor<8x8xf32>", "dims": "[1, 1]"}, "must be distinct"),
        ("C5", {"operand": "tensor<7xf32>"}, "an extent of 7 cannot be broadcast to an extent of 8"),
        ("C7", {"numbers": "tensor<3xi64>"}, "there are 3 elements of output_dimensions, expected 2"),
        ("C7", {**STATED, "result": "tensor<3x8xf32>"}, r"shape \[3, 8\], expected \[4, 8\]"),
        (
            "C8",
            {"more": " {known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 0>}"},
            "must be distinct",
        ),
        ("C9", {"more": " {known_expanding_dimensions = array<i64: 1>}"}, "must be non-negative and less than rank 1"),
        (
            "C10",
            {"more": " {known_nonexpanding_dimensions = array<i64: -1>}"},
            "must be non-negative and less than rank 1",
        ),
    ],
)
def test_dynamic_broadcast_in_dim_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    BROADCAST.refuse(label, words, **changed)


@pytest.mark.parametrize("changed", [STATED, {"operand": "tensor<1xf32>"}, {"operand": "tensor<?xf32>"}])
def test_valid_dynamic_broadcasts_are_accepted(changed: dict[str, str], judge: Judge) -> None:
    BROADCAST.accept(judge, **changed)


RESHAPE = Template(
    "{shape}%r = stablehlo.dynamic_reshape %0, {name} : ({operand}, {numbers}) -> {result}",
    {
        "shape": "",
        "name": "%1",
        "operand": "tensor<32xf32>",
        "numbers": "tensor<2xi64>",
        "result": "tensor<?x8xf32>",
    },
    ("operand", "numbers"),
)
IOTA = Template(
    "{shape}%r = stablehlo.dynamic_iota {name}, dim = {dim} : ({numbers}) -> {result}",
    {"shape": "", "name": "%0", "dim": "1", "numbers": "tensor<2xi64>", "result": "tensor<?x8xf32>"},
    ("numbers",),
)
SIZE = Template(
    "%r = stablehlo.get_dimension_size %0, dim = {dim} : ({operand}) -> tensor<i32>",
    {"dim": "0", "operand": "tensor<?xf32>"},
    ("operand",),
)


@pytest.mark.parametrize(
    ("template", "label", "changed", "words"),
    [
        (RESHAPE, "I2", {"numbers": "tensor<?xi64>"}, "expected a static number of elements"),
        (RESHAPE, "C1", {"result": "tensor<?x8xi32>"}, "elements of type i32, expected f32"),
        (RESHAPE, "C2", {"result": "tensor<5x8xf32>"}, "the result has 40 elements, but the operand has 32"),
        (
            RESHAPE,
            "C2",
            {**STATED, "operand": "tensor<31xf32>"},
            r"the shape \[4, 8\] has 32 elements, "
            "but the operand has 31",
        ),
        (RESHAPE, "C4", {"numbers": "tensor<3xi64>"}, "there are 3 elements of output_shape, expected 2"),
        (RESHAPE, "C4", {"numbers": "tensor<2xf32>"}, "expected a tensor of integers"),
        (RESHAPE, "C4", {**STATED, "result": "tensor<8x4xf32>"}, r"shape \[8, 4\], expected \[4, 8\]"),
        (IOTA, "I1", {"numbers": "tensor<?xi64>"}, "expected a static number of elements"),
        (IOTA, "C1", {"dim": "2"}, r"dim \[2\] must be non-negative and less than rank 2"),
        (IOTA, "C2", {"result": "tensor<?xf32>", "dim": "0"}, "there are 2 elements of output_shape, expected 1"),
        (IOTA, "C2", {**STATED, "result": "tensor<5x8xf32>"}, r"shape \[5, 8\], expected \[4, 8\]"),
        (IOTA, "C2", {"result": "tensor<?x8xi1>"}, "the result has elements of type i1, expected a numeric type"),
        (SIZE, "C1", {"dim": "1"}, r"dimension \[1\] must be non-negative and less than rank 1"),
    ],
)
def test_shape_operands_are_checked(template: Template, label: str, changed: dict[str, str], words: str) -> None:
    template.refuse(label, words, **changed)


@pytest.mark.parametrize("template", [RESHAPE, IOTA])
def test_valid_shape_operands_are_accepted(template: Template, judge: Judge) -> None:
    template.accept(judge, **STATED)


PAD = Template(
    "{amounts}%r = stablehlo.dynamic_pad %0, %1, {low}, {low}, {between}"
    " : ({operand}, {value}, {numbers}, {numbers}, {numbers}) -> {result}",
    {
        "amounts": "",
        "low": "%2",
        "between": "%2",
        "operand": "tensor<4xf32>",
        "value": "tensor<f32>",
        "numbers": "tensor<1xi64>",
        "result": "tensor<?xf32>",
    },
    ("operand", "value", "numbers"),
)
AMOUNT = {"amounts": "%n = stablehlo.constant dense<AMOUNT> : tensor<1xi64>\n  "}


def amount(number: int, *names: str) -> dict[str, str]:
    return {"amounts": AMOUNT["amounts"].replace("AMOUNT", str(number)), **dict.fromkeys(names, "%n")}


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("I2", {"value": "tensor<1xf32>"}, r"the padding value has shape \[1\], expected \[\]"),
        ("C1", {"value": "tensor<f64>"}, "elements of type f64, expected f32"),
        ("C2", {"numbers": "tensor<2xi64>"}, "there are 2 elements of edge_padding_low, expected 1"),
        ("C3", amount(-1, "between"), "interior_padding must not be negative"),
        ("C4", {**amount(1, "low", "between"), "result": "tensor<8xf32>"}, r"shape \[8\], expected \[9\]"),
        ("C4", {"result": "tensor<?x?xf32>"}, "there are 2 dimensions of the result, expected 1"),
    ],
)
def test_dynamic_pad_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    PAD.refuse(label, words, **changed)


def test_valid_dynamic_pads_are_accepted(judge: Judge) -> None:
    PAD.accept(judge, **amount(1, "low", "between"), result="tensor<9xf32>")


GATHER = Template(
    '{sizes}%r = "stablehlo.dynamic_gather"(%0, %1, {name}) <{dimension_numbers = #stablehlo.gather<'
    "offset_dims = {offset}, collapsed_slice_dims = {collapsed}, start_index_map = {map},"
    " index_vector_dim = {vector}>}> : ({operand}, {indices}, {numbers}) -> {result}",
    {
        "sizes": "",
        "name": "%2",
        "offset": "[1]",
        "collapsed": "[0]",
        "map": "[0]",
        "vector": "1",
        "operand": "tensor<4x8xf32>",
        "indices": "tensor<2x1xi32>",
        "numbers": "tensor<2xi64>",
        "result": "tensor<2x?xf32>",
    },
    ("operand", "indices", "numbers"),
)


def sizes(text: str) -> dict[str, str]:
    return {"sizes": f"%n = stablehlo.constant dense<{text}> : tensor<2xi64>\n  ", "name": "%n"}


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("I2", {"indices": "tensor<2x1xf32>"}, "elements of type f32, expected integers"),
        ("I3", {"numbers": "tensor<?xi64>"}, "expected a static number of elements"),
        ("C1", {"offset": "[1, 2]"}, "there are 3 offset_dims"),
        ("C2", {"vector": "3"}, "index_vector_dim is 3, expected 0 to 2"),
        ("C3", {"map": "[0, 1]"}, r"an index vector has shape \[1\], expected \[2\]"),
        ("C4", {"offset": "[1, 0]", "collapsed": "[]"}, "must be in ascending order"),
        ("C5", {"offset": "[3]"}, "must be non-negative and less than rank 2"),
        ("C6", {"offset": "[]", "collapsed": "[1, 0]"}, "must be in ascending order"),
        ("C7", {"collapsed": "[2]"}, "must be non-negative and less than rank 2"),
        ("C8", sizes("[2, 8]"), r"slice_sizes are \[2\] along collapsed_slice_dims \[0\]"),
        ("C9", {"map": "[0, 0]", "indices": "tensor<2x2xi32>"}, "must be distinct"),
        ("C10", {"map": "[2]"}, "must be non-negative and less than rank 2"),
        ("C11", {"numbers": "tensor<3xi64>"}, "there are 3 elements of slice_sizes, expected 2"),
        ("C12", sizes("[1, 9]"), "a slice has size 9, more than the extent 8"),
        ("C13", {**sizes("[1, 8]"), "result": "tensor<2x7xf32>"}, r"shape \[2, 7\], expected \[2, 8\]"),
        ("C14", {"result": "tensor<2x?xf64>"}, "elements of type f64, expected f32"),
    ],
)
def test_dynamic_gather_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    GATHER.refuse(label, words, **changed)


def test_valid_dynamic_gathers_are_accepted(judge: Judge) -> None:
    GATHER.accept(judge, **sizes("[1, 8]"), result="tensor<2x8xf32>")


CONVOLUTION = Template(
    '{padding}%r = "stablehlo.dynamic_conv"(%0, %1, {name}) <{batch_group_count = 1 : i64,'
    " feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>"
    "{more}}> : ({image}, {kernel}, {numbers}) -> {result}",
    {
        "padding": "",
        "name": "%2",
        "more": "",
        "image": "tensor<1x8x8x3xf32>",
        "kernel": "tensor<2x2x3x5xf32>",
        "numbers": "tensor<2x2xi64>",
        "result": "tensor<1x?x?x5xf32>",
    },
    ("image", "kernel", "numbers"),
)
PADDING = {"padding": "%n = stablehlo.constant dense<1> : tensor<2x2xi64>\n  ", "name": "%n"}


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("C2", {"more": ", window_strides = array<i64: 1>"}, "there are 1 window_strides, expected 2"),
        ("C4", {"numbers": "tensor<3x2xi64>"}, r"the padding has shape \[3, 2\], expected \[2, 2\]"),
        ("C14", {"kernel": "tensor<2x2x4x5xf32>"}, "the kernel has 4 input features, expected 3/1"),
        ("C25", {"result": "tensor<1x?x?x6xf32>"}, "expected"),
        ("C25", {**PADDING, "result": "tensor<1x8x9x5xf32>"}, r"shape \[1, 8, 9, 5\], expected \[1, 9, 9, 5\]"),
        ("C27", {"kernel": "tensor<2x2x3x5xf64>"}, "elements of type f64, expected f32"),
    ],
)
def test_dynamic_conv_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    CONVOLUTION.refuse(label, words, **changed)


def test_valid_dynamic_convolutions_are_accepted(judge: Judge) -> None:
    CONVOLUTION.accept(judge, **PADDING, result="tensor<1x9x9x5xf32>")
