"""Constraints of custom calls, FFT and result accuracy, each violated separately."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import ParseError

from recompute.mlir_io.parser import parse_module
from recompute.test.mlir_judge import Judge
from recompute.test.unit.dialects.stablehlo.constraints import Template

CALL = Template(
    '%r:2 = "stablehlo.custom_call"(%0, %1) <{call_target_name = "f" {more}}>'
    " : ({one}, {other}) -> ({result}, {token})",
    {
        "more": "",
        "one": "tensor<2x3xf32>",
        "other": "tuple<tensor<4xi32>, tuple<tensor<5xi8>>>",
        "result": "tensor<5xi8>",
        "token": "!stablehlo.token",
    },
    ("one", "other"),
)
EMPTY, ROW, MATRIX = "dense<> : tensor<0xindex>", "dense<0> : tensor<1xindex>", "dense<[1, 0]> : tensor<2xindex>"


def layouts(operands: str, results: str) -> str:
    return f", operand_layouts = [{operands}], result_layouts = [{results}]"


def alias(output: str, operand: int, part: str) -> str:
    numbers = f"output_tuple_indices = {output}, operand_index = {operand}, operand_tuple_indices = {part}"
    return f", output_operand_aliases = [#stablehlo.output_operand_alias<{numbers}>]"


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("I5", {"more": ", api_version = 5 : i32"}, "api_version is 5, expected 0 to 4"),
        ("I5", {"more": ", api_version = -1 : i32"}, "api_version is -1"),
        ("I4", {"more": ", backend_config = {a = 1}"}, "backend_config must be a string for api_version = 1"),
        ("I4", {"more": ', backend_config = "", api_version = 4 : i32'}, "backend_config must be a dictionary"),
        (
            "layouts",
            {"more": f", operand_layouts = [{MATRIX}, {EMPTY}]"},
            "operand_layouts and result_layouts must be given together, or not at all",
        ),
        ("layouts", {"more": layouts(MATRIX, f"{ROW}, {EMPTY}")}, "there are 1 operand_layouts, expected 2"),
        (
            "layouts",
            {"more": layouts(f"{MATRIX}, {EMPTY}", f"{ROW}, {EMPTY}")},
            "a value of type tuple<",
        ),
        (
            "layouts",
            {"other": "tensor<f32>", "more": layouts(f"{MATRIX}, {EMPTY}", ROW)},
            "there are 1 result_layouts, expected 2",
        ),
        (
            "layouts",
            {"other": "tensor<f32>", "more": layouts(f"{MATRIX}, {EMPTY}", f"{ROW}, {ROW}")},
            r"a layout has 1 entry, expected one for each dimension of !stablehlo.token",
        ),
        (
            "layouts",
            {"other": "tensor<f32>", "more": layouts(f"{ROW}, {EMPTY}", f"{ROW}, {EMPTY}")},
            r"a layout has 1 entry, expected one for each dimension of tensor<2x3xf32>",
        ),
        (
            "layouts",
            {"other": "tensor<f32>", "more": layouts(f"{MATRIX.replace('1', '2')}, {EMPTY}", f"{ROW}, {EMPTY}")},
            r"the layout \[2, 0\] is not a permutation",
        ),
        (
            "layouts",
            {"other": "tensor<f32>", "more": layouts(f"{MATRIX.replace('index', 'i64')}, {EMPTY}", f"{ROW}, {EMPTY}")},
            "a layout must be a constant of type tensor<Nxindex>",
        ),
        ("I7", {"more": alias("[0]", 2, "[]")}, "operand_index is 2, expected the index of one of the 2 operands"),
        ("I7", {"more": alias("[0]", -1, "[]")}, "operand_index is -1"),
        ("I7", {"more": alias("[2]", 1, "[1, 0]")}, r"output_tuple_indices \[2\] do not select one of 2 results"),
        ("I7", {"more": alias("[]", 1, "[1, 0]")}, r"output_tuple_indices \[\] do not select one"),
        (
            "I7",
            {"more": alias("[0, 0]", 1, "[1, 0]")},
            r"output_tuple_indices \[0\] do not select an element of tensor<",
        ),
        (
            "I7",
            {"more": alias("[0]", 1, "[1, 1]")},
            r"operand_tuple_indices \[1, 1\] do not select an element of tuple<",
        ),
        ("I7", {"more": alias("[0]", 0, "[]")}, "a result of type tensor<5xi8> cannot alias an operand of type"),
    ],
)
def test_custom_call_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    CALL.refuse(label, words, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"more": ", api_version = 4 : i32, backend_config = {a = 1}, has_side_effect = true"},
        {"more": ', api_version = 2 : i32, backend_config = "x", called_computations = [@f]'},
        {"more": alias("[0]", 1, "[1, 0]")},
        {"other": "tensor<f32>", "more": layouts(f"{MATRIX}, {EMPTY}", f"{ROW}, {EMPTY}")},
    ],
)
def test_valid_custom_calls_are_accepted(changed: dict[str, str], judge: Judge) -> None:
    CALL.accept(judge, **changed)


def test_tuple_result_needs_a_layout_for_each_element() -> None:
    text = '%r = "stablehlo.custom_call"(%0) <{call_target_name = "f" {more}}> : ({one}) -> {result}'
    values = {"more": layouts(MATRIX, f"{ROW}, {ROW}"), "one": "tensor<2x3xf32>"}
    single = Template(text, {**values, "result": "tuple<tensor<2xf32>, tensor<3xf32>>"}, ("one",))
    single.refuse("layouts", "there are 1 result_layouts, expected 2", more=layouts(MATRIX, ROW))


FFT = Template(
    "%r = stablehlo.fft %0, type = {type}, length = {lengths} : ({operand}) -> {result}",
    {"type": "RFFT", "lengths": "[6, 8]", "operand": "tensor<3x6x8xf32>", "result": "tensor<3x6x5xcomplex<f32>>"},
    ("operand",),
)


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        (
            "C1",
            {"operand": "tensor<8xf32>", "result": "tensor<5xcomplex<f32>>"},
            "fft_length has 2 entries, but the operand has rank 1",
        ),
        ("C2", {"result": "tensor<3x6x5xf32>"}, "tensor<3x6x5xf32>, but RFFT requires complex numbers"),
        ("C2", {"operand": "tensor<3x6x8xf64>"}, "elements of type f64, expected f32"),
        ("C2", {"type": "FFT"}, "tensor<3x6x8xf32>, but FFT requires complex numbers"),
        ("C2", {"type": "IFFT", "operand": "tensor<3x6x5xcomplex<f64>>"}, "expected complex<f64>"),
        ("C2", {"type": "IRFFT", "operand": "tensor<3x6x5xcomplex<f32>>"}, "elements of type complex<f32>"),
        ("C3", {"lengths": "[]"}, "fft_length has 0 entries, expected 1 to 3"),
        ("C3", {"lengths": "[1, 3, 6, 8]"}, "fft_length has 4 entries"),
        ("C4", {"lengths": "[8]", "operand": "tensor<3x6x9xf32>"}, r"has shape \[9\], expected \[8\]"),
        ("C4", {"lengths": "[3, 8]"}, r"has shape \[6, 8\], expected \[3, 8\]"),
        ("C4", {"lengths": "[-8]"}, r"the lengths \[-8\] must not be negative"),
        ("C5", {"result": "tensor<3x6x8xcomplex<f32>>"}, r"has shape \[3, 6, 8\], expected \[3, 6, 5\]"),
        ("C5", {"operand": "tensor<3x?x?xf32>", "result": "tensor<3x5x5xcomplex<f32>>"}, r"expected \[3, 6, 5\]"),
        (
            "C5",
            {"type": "IRFFT", "operand": "tensor<3x5x5xcomplex<f32>>", "result": "tensor<?x?x?xf32>"},
            r"has shape \[3, 5, 5\], expected \[\?, 6, 5\]",
        ),
        (
            "C5",
            {"type": "IRFFT", "operand": "tensor<3x6x6xcomplex<f32>>", "result": "tensor<?x?x?xf32>"},
            r"has shape \[3, 6, 6\]",
        ),
        (
            "C5",
            {"type": "FFT", "operand": "tensor<3x6x6xcomplex<f32>>"},
            r"has shape \[3, 6, 5\], expected \[3, 6, 6\]",
        ),
    ],
)
def test_fft_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    FFT.refuse(label, words, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"type": "FFT", "operand": "tensor<3x6x5xcomplex<f32>>"},
        {"type": "IRFFT", "operand": "tensor<3x6x5xcomplex<f32>>", "result": "tensor<3x6x8xf32>"},
        {"lengths": "[0]", "operand": "tensor<3x0xf32>", "result": "tensor<3x0xcomplex<f32>>"},
        {"operand": "tensor<?x?x?xf32>", "result": "tensor<?x?x?xcomplex<f32>>"},
    ],
)
def test_valid_transforms_are_accepted(changed: dict[str, str], judge: Judge) -> None:
    FFT.accept(judge, **changed)


CHOLESKY = Template(
    "%r = stablehlo.cholesky %0, lower = true : ({operand}) -> {result}",
    {"operand": "tensor<2x3x3xf32>", "result": "tensor<2x3x3xf32>"},
    ("operand",),
)


@pytest.mark.parametrize(
    ("label", "type_", "words"),
    [
        ("C2", "tensor<3xf32>", "has rank 1, expected at least 2"),
        ("C3", "tensor<2x3x4xf32>", r"has shape \[3, 4\]"),
    ],
)
def test_cholesky_constraints_are_checked(label: str, type_: str, words: str) -> None:
    CHOLESKY.refuse("C1", "the result has type", result="tensor<2x3x3xf64>")
    CHOLESKY.refuse(label, words, operand=type_, result=type_)


def accuracy(text: str) -> str:
    mode = "#stablehlo.result_accuracy_mode"
    return f'"test.op"() {{a = #stablehlo.result_accuracy<{text.replace("MODE", mode)}>}} : () -> ()'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("atol = -1.0, mode = MODE<TOLERANCE>", "tolerances must not be negative"),
        ("rtol = -0.0, mode = MODE<TOLERANCE>", "tolerances must not be negative"),
        ("ulps = -1, mode = MODE<TOLERANCE>", "tolerances must not be negative"),
        ("ulps = 1, mode = MODE<HIGHEST>", "mode HIGHEST takes no tolerances"),
        ("atol = 1.0, mode = MODE<DEFAULT>", "mode DEFAULT takes no tolerances"),
        ("atol = 1.0e400, mode = MODE<TOLERANCE>", "the tolerance is too large"),
        ("mode = 3", "expected a mode"),
        ("ulps = 1", "Expected ','"),
        ("mode = MODE<LOW>", "Expected `DEFAULT`"),
    ],
)
def test_invalid_accuracies_are_rejected(text: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        parse_module(accuracy(text))


@pytest.mark.parametrize(
    "text",
    [
        "mode = MODE<DEFAULT>",
        "atol = 1.000000e-05, rtol = 1.250000e-01, ulps = 3, mode = MODE<TOLERANCE>",
        "rtol = 0.3333333333333333, mode = MODE<TOLERANCE>",
    ],
)
def test_accuracies_round_trip(text: str) -> None:
    module = parse_module(accuracy(text))
    assert parse_module(str(module)).is_structurally_equivalent(module)
    assert text.partition(" = ")[0] in str(module)
