"""Dense constants, exact bit for bit, in every element type.

xDSL 0.74 reads `dense<0xFF800000> : tensor<f32>` as the integer 4286578688, compares floats to find splats (so that `[0.0, -0.0]` prints as `0.0`) and stores a splat once per
element. `DenseAttr` holds bits, one element's if all are alike; `parse_dense` and `dense_text` are the way in and out.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyDenseElement,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    RankedStructure,
    ShapedType,
    TensorType,
)
from xdsl.ir import Attribute, BuiltinAttribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .elements import SUB_BYTE_BITS, DType, Element, dtype_of, encode, formatter
from .guards import AnyDense, AnyShaped, AnyTensor, is_integer_type, is_shaped, is_tensor

Nested: TypeAlias = "str | list[Nested]"
LONGEST_LIST = 100
"""Elements that are printed one by one; more are printed as a hexadecimal string."""


@irdl_attr_definition
class DenseAttr(ParametrizedAttribute, BuiltinAttribute):
    """The value of `stablehlo.constant`: `dense<…> : tensor<…>`, equal when the bits are equal.

    `data` holds the bits of one element if all are alike, otherwise of all in row-major order. Build with `DenseAttr.get`, which finds splats.
    """

    name = "stablehlo.dense"

    type: TensorType[Attribute]
    data: BytesAttr

    @staticmethod
    def get(type: AnyTensor, raw: bytes) -> DenseAttr:
        """From the bits of one element (a splat) or of all; `VerifyException` for any other length."""
        return DenseAttr(type, BytesAttr(_shortest(raw, dtype_of(type.element_type))))

    @staticmethod
    def from_numpy(array: NDArray[Any], element_type: Attribute) -> DenseAttr:
        """The array as a constant of its shape, converted to `element_type` as numpy does."""
        values = np.ascontiguousarray(array, dtype_of(element_type))
        return DenseAttr.get(TensorType(element_type, array.shape), values.tobytes())

    @property
    def is_splat(self) -> bool:
        """Whether all elements are alike (an empty tensor has none that differ, but no element to show either: false)."""
        return len(self.data.data) == dtype_of(self.type.element_type).itemsize

    def verify(self) -> None:
        try:
            size = dtype_of(self.type.element_type).itemsize
        except ValueError as error:
            raise VerifyException(str(error)) from error
        count = _count(self.type)
        if len(self.data.data) not in (size * count, size if count else 0):
            raise VerifyException(f"{len(self.data.data)} bytes of data do not fill {self.type}")

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(dense_text(self.type, self.data.data))
        printer.print_string(" : ")
        printer.print_attribute(self.type)


def to_numpy(attr: DenseAttr | AnyDense) -> NDArray[Any]:
    """The constant as a read-only array of its shape; a splat is one element seen with stride zero."""
    dtype = dtype_of(attr.type.element_type)
    shape = attr.type.get_shape()
    values = np.frombuffer(attr.data.data if isinstance(attr, DenseAttr) else _standard_bits(attr), dtype)
    return np.broadcast_to(values.reshape(()), shape) if values.size == 1 else values.reshape(shape)


def _standard_bits(attr: AnyDense) -> bytes:
    """The bits of xDSL's own attribute, which sign-extends integers below a byte, in the form that `DenseAttr` keeps."""
    dtype = dtype_of(attr.type.element_type)
    return _shortest(_masked(attr.data.data, dtype), dtype)


def standard_text(attr: AnyDense) -> str | None:
    """`dense<…>` for xDSL's own attribute, exact as `dense_text`; None for elements that numpy does not have."""
    try:
        return dense_text(attr.type, _standard_bits(attr))
    except ValueError:
        return None


def to_small(attr: AnyDense) -> DenseAttr:
    """xDSL's expanded attribute of tensor type as the same constant in the small form."""
    assert is_tensor(attr.type), "only tensors are StableHLO constants"
    return DenseAttr(attr.type, BytesAttr(_standard_bits(attr)))


def to_standard(type: AnyShaped, raw: bytes) -> AnyDense:
    """xDSL's expanded attribute, for the operations of other dialects."""
    element = type.element_type
    if is_integer_type(element) and dtype_of(element) in SUB_BYTE_BITS:
        # xDSL sign-extends; an i1 that is true is -1.
        values = np.frombuffer(raw, dtype_of(element)).astype(np.int8)
        raw = (-values if element.width.data == 1 else values).tobytes()
    if len(raw) == dtype_of(element).itemsize:
        raw *= _count(type)
    # The element type was found among those that xDSL has.
    return DenseIntOrFPElementsAttr(cast("RankedStructure[AnyDenseElement]", type), BytesAttr(raw))


def _count(type: ShapedType) -> int:
    return math.prod(type.get_shape())


def _shortest(raw: bytes, dtype: DType) -> bytes:
    first = raw[: dtype.itemsize]
    is_splat = raw[-dtype.itemsize :] == first and raw == first * (len(raw) // dtype.itemsize)
    return first if is_splat else raw


def _masked(raw: bytes, dtype: DType) -> bytes:
    """Clear the bits that the element type does not have. A true i1 may be any value but zero."""
    if dtype not in SUB_BYTE_BITS:
        return raw
    values = np.frombuffer(raw, np.uint8)
    masked = values != 0 if dtype == np.bool_ else values & (1 << SUB_BYTE_BITS[dtype]) - 1
    return masked.astype(np.uint8).tobytes()


def parse_dense(parser: AttrParser, type: Attribute | None = None) -> tuple[AnyShaped, bytes]:
    """Parse what follows the keyword `dense`: `<…> : type`, or `<…>` if the type is given. Returns type and bits, those of one element for a splat.

    A `ParseError` points at the literal if it does not fit the type.
    """
    start = parser.pos
    content = parser.lexer.input.content
    end = content.find(">", start)
    if end < 0:
        parser.raise_error("expected '<' literal '>' after 'dense'")
    # The literal is read as a piece of text: token by token a large one takes minutes.
    parser.lexer.pos = end
    parser.parse_punctuation("<", " in dense attribute")
    parser.parse_punctuation(">", " in dense attribute")
    if type is None:
        parser.parse_punctuation(":", " in dense attribute")
        type = parser.parse_type()
    if not is_shaped(type) or DYNAMIC_INDEX in type.get_shape():
        parser.raise_error(f"a dense attribute has a type of static shape, not {type}", start, end + 1)
    try:
        return type, literal_bits(content[start + 1 : end], type)
    except ValueError as error:
        parser.raise_error(str(error), start, end + 1)


def parse_constant(parser: AttrParser) -> DenseAttr:
    """Parse what follows the keyword `dense` as the value of a `stablehlo.constant`."""
    start = parser.pos
    type, raw = parse_dense(parser)
    if not is_tensor(type):
        parser.raise_error(f"a constant is a tensor, not {type}", start, parser.pos)
    return DenseAttr.get(type, raw)


def literal_bits(literal: str, type: AnyShaped) -> bytes:
    """The bits that the text between `dense<` and `>` stands for; `ValueError` if it does not fit `type`."""
    element_type = type.element_type
    dtype = dtype_of(element_type)
    if literal.lstrip().startswith('"'):
        raw = _masked(_hexadecimal_string(literal), dtype)
        if len(raw) not in (dtype.itemsize, dtype.itemsize * _count(type)):
            raise ValueError(f"{len(raw)} bytes of data do not fill {type}")
        return _shortest(raw, dtype) if _count(type) else b""
    elements, shape = _tensor_literal(literal)
    if not elements and _count(type):
        raise ValueError(f"an empty literal does not fill {type}")
    if shape is not None and shape != type.get_shape():
        raise ValueError(f"a literal of shape {list(shape)} does not fit {type}")
    raw = encode(elements, element_type)
    return _shortest(raw, dtype) if _count(type) else b""


def _hexadecimal_string(literal: str) -> bytes:
    text = literal.strip()
    if not re.fullmatch(r'"0x(?:[0-9A-Fa-f]{2})*"', text):
        raise ValueError("expected a string of hexadecimal digits, two for each byte, that starts with 0x")
    return bytes.fromhex(text[3:-1])


def _tensor_literal(literal: str) -> tuple[list[Element], tuple[int, ...] | None]:
    """Elements in row-major order, and the shape that the brackets spell; no shape for one element without brackets and for an empty literal."""
    if not literal.strip():
        return [], None
    try:
        level: list[Nested] = [json.loads(_ATOM.sub(r'"\g<0>"', literal))]
    except json.JSONDecodeError as error:
        raise ValueError("expected a number, or numbers in nested brackets") from error
    shape: list[int] = []
    while rows := [part for part in level if isinstance(part, list)]:
        if len(rows) != len(level) or len({len(row) for row in rows}) != 1:
            raise ValueError("tensor literal is invalid: its rows differ in length or rank")
        shape.append(len(rows[0]))
        level = [element for row in rows for element in row]
    elements = [_element(text) for text in level if isinstance(text, str)]
    return elements, tuple(shape) or None


_ATOM = re.compile(r'\([^()"\\]*\)|[^\s\[\](),"\\]+')


def _element(text: str) -> Element:
    if not text.startswith("("):
        return text
    real, comma, imaginary = text[1:-1].partition(",")
    if not comma:
        raise ValueError(f"expected a complex number '(real,imaginary)', got '{text}'")
    return real.strip(), imaginary.strip()


def dense_text(type: AnyShaped, raw: bytes) -> str:
    """`dense<…>` without the type, such that MLIR reads the same bits. `raw` holds one element or all."""
    return f"dense<{_literal(type, raw)}>"


def _literal(type: AnyShaped, raw: bytes) -> str:
    size = dtype_of(type.element_type).itemsize
    if not raw:
        return ""
    text = formatter(type.element_type)
    if len(raw) == size:
        # One element of a tensor may stand for all of them: no brackets.
        return text(raw)
    if len(raw) > LONGEST_LIST * size:
        return f'"0x{raw.hex().upper()}"'
    parts = [text(raw[start : start + size]) for start in range(0, len(raw), size)]
    for extent in reversed(type.get_shape()):
        parts = [f"[{', '.join(parts[start : start + extent])}]" for start in range(0, len(parts), extent)]
    return parts[0]
