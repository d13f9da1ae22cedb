"""Dense constants, exact bit for bit, in every element type. If all elements are equal, one of them is stored.

xDSL 0.74 reads `dense<0xFF800000> : tensor<f32>` as the integer 4286578688, compares floats to find splats (so that
`[0.0, -0.0]` prints as `0.0`) and stores a splat once per element. `DenseAttr` stores bits, and only the bits of one
element if all are equal. This project's parser creates xDSL's attributes in the same form. `parse_dense` and
`dense_text` convert from and to text.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import AnyDenseElement, BytesAttr, DenseIntOrFPElementsAttr, RankedStructure, TensorType
from xdsl.ir import Attribute, BuiltinAttribute, Data, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..support.type_guards import AnyDense, AnyShaped, AnyTensor, is_integer_type, is_tensor
from .dense_literal import count_of, dense_text, mask_bits, parse_dense, shortest
from .elements import SUB_BYTE_BITS, dtype_of

LARGEST_EXPANDED = 1 << 20
"""The maximum number of bytes that a comparison expands."""


class SplatBytes(Data[bytes], BuiltinAttribute):
    """A `BytesAttr` of `count` equal elements, whose bytes are created on access.

    It is a virtual subclass of `BytesAttr`, and equal to the `BytesAttr` of the same bytes, unless these are more than
    `LARGEST_EXPANDED`: then the two compare unequal, which only keeps passes from merging them.
    """

    name = "bytes"

    element: bytes
    count: int

    def __init__(self, element: bytes, count: int):
        # Attributes are frozen.
        object.__setattr__(self, "element", element)
        object.__setattr__(self, "count", count)

    @property
    def data(self) -> bytes:  # pyright: ignore[reportIncompatibleVariableOverride]
        """All bytes, created on each access."""
        return self.element * self.count

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SplatBytes) and len(self.element) == len(other.element):
            return self.count == other.count and (self.element == other.element or not self.count)
        return isinstance(other, BytesAttr) and self._is_small and self.data == other.data

    def __hash__(self) -> int:
        return hash(BytesAttr(self.data) if self._is_small else (self.element, self.count))

    @property
    def _is_small(self) -> bool:
        return len(self.element) * self.count <= LARGEST_EXPANDED

    def __repr__(self) -> str:
        return f"SplatBytes({self.element!r}, {self.count})"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> bytes:
        raise ValueError("the data of a dense constant cannot be printed or parsed alone: use the whole constant")

    def print_parameter(self, printer: Printer) -> None:
        raise ValueError("the data of a dense constant cannot be printed or parsed alone: use the whole constant")

    def print_builtin(self, printer: Printer) -> None:
        BytesAttr(self.data).print_builtin(printer)


# xDSL's attributes cannot be subclassed.
BytesAttr.register(SplatBytes)


def splat_bytes(element: bytes, count: int) -> BytesAttr:
    """Return the bytes of `count` equal elements."""
    return BytesAttr(element) if count == 1 else cast(BytesAttr, SplatBytes(element, count))


@irdl_attr_definition
class DenseAttr(ParametrizedAttribute, BuiltinAttribute):
    """The value of `stablehlo.constant`: `dense<…> : tensor<…>`, equal when the bits are equal.

    `data` has the bits of one element if all elements are equal, otherwise the bits of all elements in row-major order.
    Build it with `DenseAttr.get`, which detects splats.
    """

    name = "stablehlo.dense"

    type: TensorType[Attribute]
    data: BytesAttr

    @staticmethod
    def get(type: AnyTensor, raw: bytes) -> DenseAttr:
        """Make a constant from the bits of one element (a splat) or of all. Raises `VerifyException` for any other
        length."""
        return DenseAttr(type, BytesAttr(shortest(raw, dtype_of(type.element_type))))

    @staticmethod
    def from_numpy(array: NDArray[Any], element_type: Attribute) -> DenseAttr:
        """Return the array as a constant of its shape, converted to `element_type` as numpy does."""
        values = np.ascontiguousarray(array, dtype_of(element_type))
        return DenseAttr.get(TensorType(element_type, array.shape), values.tobytes())

    @property
    def is_splat(self) -> bool:
        """Whether `data` has one element that stands for all; also true for an empty tensor that was written as a
        splat."""
        return len(self.data.data) == dtype_of(self.type.element_type).itemsize

    def verify(self) -> None:
        try:
            size = dtype_of(self.type.element_type).itemsize
        except ValueError as error:
            raise VerifyException(str(error)) from error
        if len(self.data.data) not in (size * count_of(self.type), size):
            raise VerifyException(f"a constant of type {self.type} cannot have {len(self.data.data)} bytes of data")

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(dense_text(self.type, self.data.data))
        printer.print_string(" : ")
        printer.print_attribute(self.type)


def to_numpy(attr: DenseAttr | AnyDense) -> NDArray[Any]:
    """Return the constant as a read-only array of its shape; a splat is one element with stride zero."""
    dtype = dtype_of(attr.type.element_type)
    shape = attr.type.get_shape()
    values = np.frombuffer(attr.data.data if isinstance(attr, DenseAttr) else small_bits(attr), dtype)
    return np.broadcast_to(values.reshape(()), shape) if values.size == 1 else values.reshape(shape)


def small_bits(attr: AnyDense) -> bytes:
    """Return the bits of xDSL's own attribute, in the form of `DenseAttr`. xDSL, in contrast, sign-extends integers
    narrower than a byte."""
    dtype = dtype_of(attr.type.element_type)
    if isinstance(attr.data, SplatBytes):
        return mask_bits(attr.data.element, dtype)
    return shortest(mask_bits(attr.data.data, dtype), dtype)


def standard_text(attr: AnyDense) -> str | None:
    """Print xDSL's own attribute as `dense<…>`, as exactly as `dense_text`; None for an element type that numpy
    lacks."""
    try:
        return dense_text(attr.type, small_bits(attr))
    except ValueError:
        return None


def to_small(attr: AnyDense) -> DenseAttr:
    """Convert xDSL's expanded attribute of tensor type to the equivalent `DenseAttr`."""
    assert is_tensor(attr.type), "a StableHLO constant must be a tensor"
    return DenseAttr(attr.type, BytesAttr(small_bits(attr)))


def to_standard(type: AnyShaped, raw: bytes) -> AnyDense:
    """Convert to xDSL's own attribute, for operations of other dialects; a splat is expanded when its data are
    accessed."""
    element = type.element_type
    if is_integer_type(element) and dtype_of(element) in SUB_BYTE_BITS:
        # xDSL sign-extends: a true i1 is -1.
        values = np.frombuffer(raw, dtype_of(element)).astype(np.int8)
        raw = (-values if element.width.data == 1 else values).tobytes()
    # `dtype_of` has checked that the element type is one of xDSL's.
    ranked = cast("RankedStructure[AnyDenseElement]", type)
    if len(raw) == dtype_of(element).itemsize:
        return _without_check(ranked, splat_bytes(raw, count_of(type)))
    return DenseIntOrFPElementsAttr(ranked, BytesAttr(raw))


def _without_check(type: RankedStructure[AnyDenseElement], data: BytesAttr) -> AnyDense:
    """Return the attribute without xDSL's check of its length, which would expand the data."""
    attr: AnyDense = object.__new__(DenseIntOrFPElementsAttr)
    object.__setattr__(attr, "type", type)
    object.__setattr__(attr, "data", data)
    return attr


def parse_constant(parser: AttrParser) -> DenseAttr:
    """Parse the text after the keyword `dense` as the value of a `stablehlo.constant`."""
    start = parser.pos
    type, raw = parse_dense(parser)
    if not is_tensor(type):
        parser.raise_error(f"a constant must be a tensor, not {type}", start, parser.pos)
    return DenseAttr.get(type, raw)
