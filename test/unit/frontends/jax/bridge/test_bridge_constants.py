"""Exact bits of constants of every element type across the bridge: NaN payloads, -0.0, splats, types below a byte."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float32Type,
    Float64Type,
    IntegerType,
    ModuleOp,
    Signedness,
    TensorType,
    f32,
)
from xdsl.ir import Attribute, Block, Region

from recompute.dialects.constants.dense import DenseAttr, to_standard
from recompute.dialects.constants.dense_literal import mask_bits
from recompute.dialects.constants.elements import COMPLEX, FLOATS, INTEGERS, bit_width, dtype_of
from recompute.dialects.stablehlo.creation import ConstantOp
from recompute.frontends.jax.bridge import read, write
from recompute.frontends.jax.internals import private
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import attribute_text, print_module
from recompute.support.operations import every_operation
from recompute.test.unit.frontends.jax.bridge.crossings import crosses, generic, theirs

INTEGER_TYPES = [
    IntegerType(width, sign)
    for width in (1, *INTEGERS)
    for sign in (Signedness.SIGNLESS, Signedness.UNSIGNED)
    if width > 1 or sign == Signedness.SIGNLESS
]
ELEMENTS: list[Attribute] = [
    *(kind() for kind in FLOATS),
    *INTEGER_TYPES,
    *(ComplexType(kind()) for kind in COMPLEX if kind in (Float32Type, Float64Type)),
]
COUNTS = {"one": 1, "few": 7, "many": 150}
SPECIAL: dict[type[Attribute], list[int]] = {
    Float32Type: [0x7F800001, 0xFFC12345, 0x80000000, 0x7F800000, 1],
    BFloat16Type: [0x7F81, 0xFFC1, 0x8000, 0x7F80, 1],
    Float64Type: [0x7FF0000000000001, 0x8000000000000000, 1],
}


def random_bytes(element: Attribute, count: int) -> bytes:
    """Return random bits, restricted to the width of the element type."""
    dtype = dtype_of(element)
    raw = np.random.default_rng(count).bytes(count * dtype.itemsize)
    if bit_width(dtype) < 8 * dtype.itemsize:
        raw = (np.frombuffer(raw, np.uint8) & ((1 << bit_width(dtype)) - 1)).tobytes()
    return mask_bits(raw, dtype)


def bits_cross(element: Attribute, raw: bytes, count: int) -> None:
    value = DenseAttr.get(TensorType(element, [count]), raw)
    module = ModuleOp(Region(Block([ConstantOp(value)])))
    result = write(module, private.mlir_context())
    assert constant_of(read(result)) == value
    assert constant_of(crosses(result)).data == value.data
    assert attribute_text(value).partition(" : ")[0] in print_module(module)
    # MLIR's own reading of our text has the same constant.
    assert generic(theirs(print_module(module, debuginfo=True))) == generic(result)


def constant_of(module: ModuleOp) -> DenseAttr:
    (result,) = [op.value for op in every_operation(module) if isinstance(op, ConstantOp)]
    assert isinstance(result, DenseAttr)
    return result


@pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_random_bits_cross_unchanged(element: Attribute, count: int):
    bits_cross(element, random_bytes(element, count), count)


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_splat_crosses_as_one_element(element: Attribute):
    raw = random_bytes(element, 1)
    bits_cross(element, raw * 1000, 1000)
    result = read(theirs(print_module(ModuleOp([ConstantOp(DenseAttr.get(TensorType(element, [50, 20]), raw))]))))
    assert constant_of(result).is_splat


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_constant_without_elements_crosses(element: Attribute):
    bits_cross(element, b"", 0)


@pytest.mark.parametrize("kind", SPECIAL)
def test_special_numbers_cross_unchanged(kind: type[Attribute]):
    element = kind()
    for bits in SPECIAL[kind]:
        raw = bits.to_bytes(dtype_of(element).itemsize, "little")
        bits_cross(element, raw, 1)
        bits_cross(element, raw * 3, 3)
        bits_cross(element, raw + bytes(len(raw)), 2)


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_dense_attributes_outside_constants_cross(element: Attribute):
    """Dense attributes outside constants, which xDSL represents by another class, cross unchanged."""
    type_ = TensorType(element, [7])
    values = [to_standard(type_, random_bytes(element, 7)), to_standard(type_, random_bytes(element, 1))]
    text = ", ".join(f"a{index} = {attribute_text(value)}" for index, value in enumerate(values))
    module = crosses(theirs(f"func.func private @f() attributes {{ {text} }}"))
    (op,) = module.body.block.ops
    assert list(op.attributes.values()) == values


def test_booleans_cross_from_any_nonzero_byte():
    """A true `i1` is read from any nonzero byte."""
    for text in ("true", "false", "[true, false, true]", "[[true], [false]]"):
        shape = {"[true, ": "3x", "[[true]": "2x1x"}.get(text[:7], "5x")
        module = crosses(
            theirs(f"func.func @f() {{ %0 = stablehlo.constant dense<{text}> : tensor<{shape}i1> return }}")
        )
        assert print_module(parse_module(print_module(module))) == print_module(module)


def test_constants_of_one_type_stay_distinct():
    text = "%0 = stablehlo.constant dense<0.0> : tensor<f32> %1 = stablehlo.constant dense<-0.0> : tensor<f32>"
    module = crosses(theirs(f"func.func @f() {{ {text} return }}"))
    values = [op.value for op in every_operation(module) if isinstance(op, ConstantOp)]
    assert len(set(values)) == 2
    assert {entry.type for entry in values} == {TensorType(f32, [])}
