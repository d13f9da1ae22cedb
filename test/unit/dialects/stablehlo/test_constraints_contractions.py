"""Constraints of matrix products, reductions and bit casts, each violated separately."""

from __future__ import annotations

import pytest

from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal
from recompute.test.mlir_judge import Judge
from recompute.test.unit.dialects.stablehlo.constraints import Template

DOT = Template(
    "%r = stablehlo.dot_general %0, %1, batching_dims = {batch} x {batches}, contracting_dims = {sum} x {sums}{more}"
    " : ({lhs}, {rhs}) -> {result}",
    {
        "batch": "[0]",
        "batches": "[2]",
        "sum": "[2]",
        "sums": "[0]",
        "more": "",
        "lhs": "tensor<2x3x4xf32>",
        "rhs": "tensor<4x5x2xf32>",
        "result": "tensor<2x3x5xf32>",
    },
    ("lhs", "rhs"),
)


def algorithm(lhs: int = 1, rhs: int = 1, operations: int = 1) -> str:
    return (
        ", algorithm = <lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32,"
        f" lhs_component_count = {lhs}, rhs_component_count = {rhs}, num_primitive_operations = {operations},"
        " allow_imprecise_accumulation = false>"
    )


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("C1", {"batch": "[]"}, "there are 1 rhs_batching_dimensions, expected 0"),
        ("C2", {"sum": "[1, 2]"}, "there are 1 rhs_contracting_dimensions, expected 2"),
        ("C3", {"sum": "[0]"}, "lhs_batching_dimensions and lhs_contracting_dimensions .* must be distinct"),
        ("C4", {"sums": "[2]"}, "rhs_batching_dimensions and rhs_contracting_dimensions .* must be distinct"),
        ("C5", {"batch": "[-1]"}, r"lhs_batching_dimensions \[-1\] must be non-negative and less than rank 3"),
        ("C6", {"sum": "[3]"}, r"lhs_contracting_dimensions \[3\] must be non-negative and less than rank 3"),
        ("C7", {"batches": "[3]"}, r"rhs_batching_dimensions \[3\] must be non-negative and less than rank 3"),
        ("C8", {"sums": "[-1]"}, r"rhs_contracting_dimensions \[-1\] must be non-negative and less than rank 3"),
        ("C9", {"rhs": "tensor<4x5x3xf32>"}, r"rhs_batching_dimensions has shape \[3\], expected \[2\]"),
        ("C10", {"rhs": "tensor<3x5x2xf32>"}, r"rhs_contracting_dimensions has shape \[3\], expected \[4\]"),
        ("C11", {"more": ", precision = [HIGH, HIGH, HIGH]"}, "there are 3 precisions, expected at most two"),
        ("C12", {"result": "tensor<2x5x3xf32>"}, r"the result has shape \[2, 5, 3\], expected \[2, 3, 5\]"),
        ("C21", {"more": f", precision = [DEFAULT, HIGH]{algorithm()}"}, "each precision must be DEFAULT"),
        ("C22", {"more": algorithm(lhs=0)}, "lhs_component_count is 0, expected a positive number"),
        ("C23", {"more": algorithm(rhs=-1)}, "rhs_component_count is -1"),
        ("C24", {"more": algorithm(operations=0)}, "num_primitive_operations is 0"),
    ],
)
def test_dot_general_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    DOT.refuse(label, words, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"more": f", precision = [DEFAULT, DEFAULT]{algorithm()}"},
        {"more": ", precision = [HIGHEST]"},
        {"lhs": "tensor<?x3x4xbf16>", "rhs": "tensor<?x5x2xf32>", "result": "tensor<2x?x5xf64>"},
    ],
)
def test_valid_products_are_accepted(changed: dict[str, str], judge: Judge) -> None:
    DOT.accept(judge, **changed)


REDUCE = Template(
    '%r:2 = "stablehlo.reduce"(%0, %1, %2, %3) <{dimensions = array<i64: {dimensions}>}> ({\n'
    "^bb0({body}):\n  stablehlo.return {returned}\n}) : ({one}, {other}, {init}, {zero}) -> ({result}, {another})",
    {
        "dimensions": "0",
        "body": "%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>",
        "returned": "%a, %d : tensor<f32>, tensor<i32>",
        "one": "tensor<2x3x4xf32>",
        "other": "tensor<2x3x4xi32>",
        "init": "tensor<f32>",
        "zero": "tensor<i32>",
        "result": "tensor<3x4xf32>",
        "another": "tensor<3x4xi32>",
    },
    ("one", "other", "init", "zero"),
)


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("C1", {"other": "tensor<2x3x5xi32>"}, r"an input has shape \[2, 3, 5\], expected \[2, 3, 4\]"),
        ("C2", {"init": "tensor<3xf32>"}, r"an initial value has shape \[3\], expected \[\]"),
        (
            "C2",
            {"zero": "tensor<i64>"},
            "an initial value has elements of type i64, but they cannot be promoted to i32",
        ),
        ("C4", {"dimensions": "3"}, r"dimensions \[3\] must be non-negative and less than rank 3"),
        ("C4", {"dimensions": "-1"}, r"dimensions \[-1\] must be non-negative and less than rank 3"),
        ("C5", {"dimensions": "0, 0"}, r"dimensions \[0, 0\] must be distinct"),
        ("C6", {"other": "tensor<2x3x4xi64>"}, "an input has elements of type i64, but they cannot be promoted to i32"),
        ("C6", {"body": "%a: tensor<f32>, %d: tensor<i32>"}, "the number of arguments of the region is 2, expected 4"),
        (
            "C6",
            {
                "body": "%a: tensor<4x3xf32>, %b: tensor<i32>, %c: tensor<4x3xf32>, %d: tensor<i32>",
                "returned": "%a, %d : tensor<4x3xf32>, tensor<i32>",
            },
            r"the region must take scalars, or tensors with the extents \[3, 4\], not tensor<4x3xf32>",
        ),
        ("C7", {"result": "tensor<2x4xf32>"}, r"a result has shape \[2, 4\], expected \[3, 4\]"),
        ("C8", {"another": "tensor<3x4xi64>"}, "a result has elements of type i64, expected i32"),
    ],
)
def test_reduce_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    REDUCE.refuse(label, words, **changed)


@pytest.mark.parametrize("part", ["3x4x", "4x", "3x", ""])
def test_reduction_body_may_use_kept_dimensions(part: str, judge: Judge) -> None:
    whole = f"tensor<{part}f32>"
    REDUCE.accept(
        judge,
        body=f"%a: {whole}, %b: tensor<i32>, %c: {whole}, %d: tensor<i32>",
        returned=f"%a, %d : {whole}, tensor<i32>",
        init=whole,
    )


def test_reduction_body_may_use_wider_types(judge: Judge) -> None:
    REDUCE.accept(
        judge,
        body="%a: tensor<f64>, %b: tensor<i64>, %c: tensor<f64>, %d: tensor<i64>",
        returned="%a, %d : tensor<f64>, tensor<i64>",
        result="tensor<3x4xf64>",
        another="tensor<3x4xi64>",
        zero="tensor<i64>",
    )


BITCAST = Template(
    "%r = stablehlo.bitcast_convert %0 : ({operand}) -> {result}",
    {"operand": "tensor<2x3xf32>", "result": "tensor<2x3x2xi16>"},
    ("operand",),
)


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        (
            "C1",
            {"result": "tensor<2x3x4xi16>"},
            "with elements of 32 bits, cannot be reinterpreted as .* with elements of 16 bits",
        ),
        ("C1", {"result": "tensor<2x3xi16>"}, "with elements of 16 bits"),
        (
            "C1",
            {"result": "tensor<2x3x1xi32>"},
            "with elements of 32 bits, cannot be reinterpreted as .* with elements of 32 bits",
        ),
        ("C1", {"result": "tensor<2x3x2x1xi16>"}, "more than one dimension"),
        ("C1", {"result": "tensor<2x4x2xi16>"}, r"expected \[2, 3\]"),
        (
            "C1",
            {"operand": "tensor<2x3x3xi8>", "result": "tensor<2x3xi32>"},
            "with elements of 8 bits, cannot be reinterpreted",
        ),
        ("C2", {"result": "tensor<2xcomplex<f32>>"}, "only one of them is complex"),
    ],
)
def test_bitcast_convert_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    BITCAST.refuse(label, words, **changed)


@pytest.mark.parametrize(
    ("operand", "result"),
    [
        ("tensor<2x3x4xi8>", "tensor<2x3xi32>"),
        ("tensor<2x3x?xi8>", "tensor<2x?xi32>"),
        ("tensor<2x3xi32>", "tensor<2x3xf32>"),
        ("tensor<2xcomplex<f64>>", "tensor<2x2xcomplex<f32>>"),
    ],
)
def test_valid_bitcasts_are_accepted(operand: str, result: str, judge: Judge) -> None:
    BITCAST.accept(judge, operand=operand, result=result)


def test_bit_width_of_quantized_types_is_unknown() -> None:
    parse_module(BITCAST.program(operand="tensor<2xf32>", result="tensor<2x!quant.uniform<i8:f32, 1.0:17>>")).verify()


def test_driver_reports_the_label_of_the_constraint() -> None:
    module = parse_module(DOT.program(sums="[2]"), "f.mlir")
    with pytest.raises(Refusal, match=r"^f.mlir:2:\d+: error: stablehlo.dot_general: C4: rhs_batching_dimensions"):
        verify_module(module)
