"""Quantized element types: equality of different spellings, and constraints, each violated separately."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import VerifyException

from recompute.dialects.stablehlo.quantized_types import QuantizedType
from recompute.mlir_io.parser import parse_module
from recompute.support.type_guards import is_tensor
from recompute.test.unit.dialects.stablehlo.constraints import Template

PLAIN = "!quant.uniform<i8:f32, 0.5:3>"
BY_DIMENSION = "!quant.uniform<i8:f32:1, {0.5:3, 0.25}>"


def _type(text: str) -> str:
    return f"tensor<4x2x{text}>"


ADD = Template(
    "%r = stablehlo.add %0, %1 : ({lhs}, {rhs}) -> {result}",
    {"lhs": _type(PLAIN), "rhs": _type(PLAIN), "result": _type(PLAIN)},
    ("lhs", "rhs"),
)
MAXIMUM = Template(ADD.text.replace("add", "maximum"), ADD.values, ADD.arguments)
DOT = Template(
    "%r = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : ({lhs}, {rhs}) -> {result}",
    {
        "lhs": "tensor<4x2x!quant.uniform<i8:f32, 0.5:3>>",
        "rhs": "tensor<2x3x!quant.uniform<i8:f32, 0.5>>",
        "result": "tensor<4x3x!quant.uniform<i32:f32, 0.25>>",
    },
    ("lhs", "rhs"),
)
CONVOLUTION = Template(
    "%r = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} "
    "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ({lhs}, {rhs}) -> {result}",
    {
        "lhs": "tensor<1x8x2x!quant.uniform<i8:f32, 0.5:3>>",
        "rhs": "tensor<3x2x4x!quant.uniform<i8:f32:2, {0.5, 0.5, 0.5, 0.5}>>",
        "result": "tensor<1x6x4x!quant.uniform<i32:f32:2, {0.5, 0.5, 0.5, 0.5}>>",
    },
    ("lhs", "rhs"),
)
BROADCAST = Template(
    "%r = stablehlo.broadcast_in_dim %0, dims = [0, 2] : ({operand}) -> {result}",
    {
        "operand": "tensor<4x1x!quant.uniform<i8:f32:1, {0.5:3}>>",
        "result": "tensor<4x3x2x!quant.uniform<i8:f32:2, {0.5:3, 0.5:3}>>",
    },
    ("operand",),
)
TRANSPOSE = Template(
    "%r = stablehlo.transpose %0, dims = [1, 0] : ({operand}) -> {result}",
    {"operand": _type(BY_DIMENSION), "result": f"tensor<2x4x{BY_DIMENSION.replace(':1,', ':0,')}>"},
    ("operand",),
)


@pytest.mark.parametrize(
    ("spelled", "same"),
    [
        ("!quant.uniform<i8<-128:127>:f32, 0.5:3>", PLAIN),
        ("!quant.uniform<i8:f32,5.000000e-01:3>", PLAIN),
        ("!quant.uniform<ui8:f32, 1.0>", "!quant.uniform<u8:f32, 1.0:0>"),
    ],
)
def test_equal_types_may_be_spelled_differently(spelled: str, same: str) -> None:
    module = parse_module(f"func.func @f(%0: tensor<2x{spelled}>, %1: tensor<2x{same}>) {{ return }}")
    arguments = module.body.block.first_op.regions[0].block.arg_types  # pyright: ignore
    first, second = (QuantizedType.of(type_.element_type) for type_ in arguments if is_tensor(type_))
    assert first is not None and first == second


@pytest.mark.parametrize(
    ("label", "text", "words"),
    [
        ("C3", "!quant.uniform<i8<-200:127>:f32, 0.5:3>", "is not within -128:127"),
        ("C5", "!quant.uniform<i8:f32, -0.5:3>", "is not a positive, finite f32"),
        ("C5", "!quant.uniform<i8:f16, 1.0e+05:3>", "is not a positive, finite f16"),
        ("C5", "!quant.uniform<i8:f16, 5.0e-08:3>", "is not a positive, finite f16"),
        ("C7", "!quant.uniform<i8<-1:1>:f32, 0.5:3>", "zero point 3 is not within -1:1"),
        ("C10", "!quant.uniform<i8:f32, {0.5:3, 0.5:3}>", "2 scales, expected 1"),
        ("C11", "!quant.uniform<i8:f32:-1, {0.5:3}>", "dimension is -1"),
        ("C12", "!quant.uniform<i8:f32:2, {0.5:3}>", "dimension 2 must be less than rank 2"),
        ("C13", "!quant.uniform<i8:f32:0, {0.5:3, 0.5:3}>", "2 scales, but the quantization dimension has extent 4"),
    ],
)
def test_types_that_the_specification_forbids_are_refused(label: str, text: str, words: str) -> None:
    types = dict.fromkeys(("lhs", "rhs", "result"), _type(text))
    parse_module(ADD.program()).verify()
    with pytest.raises(VerifyException, match=rf"I1: {label}: .*{words}"):
        parse_module(ADD.program(**types)).verify()


def test_error_names_per_dimension_quantized_input() -> None:
    parse_module(MAXIMUM.program()).verify()
    with pytest.raises(VerifyException, match=r"I2: .* is quantized along a dimension"):
        parse_module(MAXIMUM.program(rhs=_type(BY_DIMENSION))).verify()


@pytest.mark.parametrize(
    ("template", "label", "changed", "words"),
    [
        (ADD, "C2", {"result": _type("f32")}, "the result has type"),
        (ADD, "C3", {"rhs": _type("!quant.uniform<i4:f32, 0.5:3>")}, "has elements of type i4, expected i8"),
        (ADD, "C4", {"result": _type("!quant.uniform<i8:f16, 0.5:3>")}, "has elements of type f16, expected f32"),
        (
            ADD,
            "C5",
            {"result": _type(BY_DIMENSION)},
            "None and None, and the quantization dimension of the result is 1",
        ),
        (
            ADD,
            "C6",
            {"lhs": _type(BY_DIMENSION), "result": _type("!quant.uniform<i8:f32:0, {0.5, 0.5, 0.5, 0.5}>")},
            r"left operand \(1\) must match the quantization dimension of the result \(0\)",
        ),
        (
            ADD,
            "C7",
            {"rhs": _type(BY_DIMENSION), "result": _type("!quant.uniform<i8:f32:0, {0.5, 0.5, 0.5, 0.5}>")},
            r"right operand \(1\) must match the quantization dimension of the result \(0\)",
        ),
        (MAXIMUM, "C1", {"rhs": _type("!quant.uniform<i4:f32, 0.5:3>")}, "with any scales and zero points"),
        (DOT, "C14", {"rhs": "tensor<2x3xf32>"}, "the right operand must be quantized"),
        (DOT, "C15", {"rhs": "tensor<2x3x!quant.uniform<i8:f32, 0.5:1>>"}, "expected 0"),
        (
            DOT,
            "C16",
            {"rhs": "tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.5}>>"},
            "must not be a contracting dimension",
        ),
        (DOT, "C17", {"lhs": "tensor<4x2x!quant.uniform<i4:f32, 0.5>>"}, "storage types of the operands are i4 and i8"),
        (
            DOT,
            "C18",
            {"result": "tensor<4x3x!quant.uniform<i32:f16, 0.5>>"},
            "the expressed types are f32, f32 and f16",
        ),
        (DOT, "C19", {"result": "tensor<4x3x!quant.uniform<i32:f32:1, {0.5, 0.5, 0.5}>>"}, "along a dimension"),
        (
            DOT,
            "C20",
            {"lhs": "tensor<4x2xf16>", "result": "tensor<4x3xf16>"},
            "both must be f32, the expressed type of the right operand",
        ),
        (
            CONVOLUTION,
            "C29",
            {"rhs": "tensor<3x2x4x!quant.uniform<i8:f32:1, {0.5, 0.5}>>"},
            "right operand is 1, expected 2, the dimension of the output features",
        ),
        (
            CONVOLUTION,
            "C30",
            {"result": "tensor<1x6x4x!quant.uniform<i32:f32:0, {0.5}>>"},
            "result is 0, expected 2, the dimension of the output features",
        ),
        (BROADCAST, "C1", {"result": "tensor<4x3x2x!quant.uniform<i4:f32:2, {0.5:3, 0.5:3}>>"}, "expected the storage"),
        (
            BROADCAST,
            "C6",
            {"result": "tensor<4x3x2x!quant.uniform<i8:f32:0, {0.5, 0.5, 0.5, 0.5}>>"},
            r"must map the quantization dimension of the operand \(\d\) to the quantization dimension of the result",
        ),
        (
            BROADCAST,
            "C6",
            {"result": "tensor<4x3x2x!quant.uniform<i8:f32:2, {0.5:3, 0.25:3}>>"},
            "must have the scales",
        ),
        (
            TRANSPOSE,
            "C4",
            {"result": "tensor<2x4x!quant.uniform<i8:f32:1, {0.5, 0.5, 0.5, 0.5}>>"},
            r"must map the quantization dimension of the operand \(\d\) to the quantization dimension of the result",
        ),
    ],
)
def test_constraints_on_quantized_operands(template: Template, label: str, changed: dict[str, str], words: str) -> None:
    template.refuse(label, words, **changed)


def test_a_constant_is_written_in_the_storage_type() -> None:
    text = (
        "%0 = stablehlo.constant() <{value = dense<1> : tensor<2xTYPE>}> : () -> tensor<2x!quant.uniform<i8:f32, 0.5>>"
    )
    parse_module(text.replace("TYPE", "i8")).verify()
    with pytest.raises(VerifyException, match="C1: the constant has elements of type i16, expected i8"):
        parse_module(text.replace("TYPE", "i16")).verify()


def test_a_reshape_may_move_the_quantization_dimension() -> None:
    result = "!quant.uniform<i8:f32:2, {0.5:3, 0.25}>"
    line = "%r = stablehlo.reshape %0 : ({}) -> tensor<2x2x2x{}>"
    program = f"func.func @f(%0: {_type(BY_DIMENSION)}) {{\n  {line.format(_type(BY_DIMENSION), result)}\n  return\n}}"
    parse_module(program).verify()
    with pytest.raises(VerifyException, match="C1: the result has elements"):
        parse_module(program.replace("{0.5:3, 0.25}>>\n", "{0.5:3, 0.5}>>\n")).verify()
    with pytest.raises(VerifyException, match="C3: the result has 2 elements before the quantization dimension, but"):
        parse_module(program.replace("<i8:f32:2", "<i8:f32:1")).verify()


def test_explicitly_signed_storage_type_is_rejected() -> None:
    program = "func.func @f(%0: tensor<4x!quant.uniform<si8:f32, 0.5>>) {{\n  {}\n  return\n}}"
    line = "%r = stablehlo.uniform_dequantize %0 : (tensor<4x!quant.uniform<si8:f32, 0.5>>) -> tensor<4xf32>"
    with pytest.raises(VerifyException, match="the storage type is si8, expected i8"):
        parse_module(program.format(line)).verify()


def test_broadcasting_operations_keep_storage_type() -> None:
    line = "%r = chlo.broadcast_add %0, %0 : (TYPE, TYPE) -> RESULT".replace("TYPE", _type(PLAIN))
    program = f"func.func @f(%0: {_type(PLAIN)}) {{\n  {line}\n  return\n}}"
    parse_module(program.replace("RESULT", _type("!quant.uniform<i8:f32, 0.25>"))).verify()
    with pytest.raises(VerifyException, match=r"the result has elements .* with any scales and zero points"):
        parse_module(program.replace("RESULT", _type("!quant.uniform<i16:f32, 0.5:3>"))).verify()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '"stablehlo.if"(%0) ({ stablehlo.return }, { stablehlo.return }) : (tensor<1xi1>) -> ()',
            "not a tensor<i1>",
        ),
        ('"stablehlo.case"(%0) ({ stablehlo.return }) : (tensor<1xi1>) -> ()', "is not a tensor<i32>"),
        ("%1 = stablehlo.optimization_barrier %0 : TYPE", "is quantized along a dimension"),
    ],
)
def test_other_inputs_are_named_too(text: str, words: str) -> None:
    type_ = _type(BY_DIMENSION) if "TYPE" in text else "tensor<1xi1>"
    module = parse_module(f"func.func @f(%0: {type_}) {{\n  {text.replace('TYPE', type_)}\n  return\n}}")
    with pytest.raises(VerifyException, match=f"I1: .*{words}"):
        module.verify()
