"""Bit-exact dense constants of every element type. A splat, a constant with equal elements, stores only one element.

xDSL 0.74 reads `dense<0xFF800000> : tensor<f32>` as the integer 4286578688, compares floats to find splats (so that
`[0.0, -0.0]` prints as `0.0`) and stores every element of a splat. `DenseAttr` stores bits; for a splat, it stores only
the bits of one element. This project's parser stores the data of xDSL's own attributes in the same way. `parse_dense`
and `dense_text` convert between text and bits.
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

from ...support.type_guards import AnyDense, AnyShaped, AnyTensor, is_integer_type, is_tensor
from .dense_literal import collapse_splat, count_of, dense_text, mask_bits, parse_dense, wrong_size
from .elements import SUB_BYTE_BITS, dtype_of

MAX_EXPANDED = 1 << 20
"""The maximum number of bytes to which a comparison expands a splat."""


class SplatBytes(Data[bytes], BuiltinAttribute):
    """A `BytesAttr` of `count` equal elements, whose bytes are created on access.

    The class is a virtual subclass of `BytesAttr`. An instance equals a `BytesAttr` with the same bytes if there are at
    most `MAX_EXPANDED` bytes. Larger data never equal a `BytesAttr`; the only consequence is that passes do not merge
    such constants.
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
        """The bytes of all elements. Each access creates new bytes."""
        return self.element * self.count

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SplatBytes) and len(self.element) == len(other.element):
            return self.count == other.count and (self.element == other.element or not self.count)
        return isinstance(other, BytesAttr) and self._is_small and self.data == other.data

    def __hash__(self) -> int:
        return hash(BytesAttr(self.data) if self._is_small else (self.element, self.count))

    @property
    def _is_small(self) -> bool:
        return len(self.element) * self.count <= MAX_EXPANDED

    def __repr__(self) -> str:
        return f"SplatBytes({self.element!r}, {self.count})"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> bytes:
        raise ValueError("the data of a dense constant cannot be parsed alone: parse the whole constant")

    def print_parameter(self, printer: Printer) -> None:
        raise ValueError("the data of a dense constant cannot be printed alone: print the whole constant")

    def print_builtin(self, printer: Printer) -> None:
        BytesAttr(self.data).print_builtin(printer)


# xDSL's attributes cannot be subclassed.
BytesAttr.register(SplatBytes)


def splat_bytes(element: bytes, count: int) -> BytesAttr:
    """Return the bytes of `count` equal elements."""
    return BytesAttr(element) if count == 1 else cast(BytesAttr, SplatBytes(element, count))


@irdl_attr_definition
class DenseAttr(ParametrizedAttribute, BuiltinAttribute):
    """The value of `stablehlo.constant`: `dense<…> : tensor<…>`. Values with equal types and equal bits are equal.

    `data` contains the bits of one element for a splat, and otherwise the bits of all elements in row-major order.
    Create an instance with `DenseAttr.get`, which detects splats.
    """

    name = "stablehlo.dense"

    type: TensorType[Attribute]
    data: BytesAttr

    @staticmethod
    def get(type: AnyTensor, raw: bytes) -> DenseAttr:
        """Return a constant with the bits `raw` of all elements, or of one element for a splat.

        Raises `VerifyException` if `raw` has any other length.
        """
        return DenseAttr(type, BytesAttr(collapse_splat(raw, dtype_of(type.element_type))))

    @staticmethod
    def from_numpy(array: NDArray[Any], element_type: Attribute) -> DenseAttr:
        """Return the array as a constant of the same shape. Numpy converts its elements to `element_type`."""
        values = np.ascontiguousarray(array, dtype_of(element_type))
        return DenseAttr.get(TensorType(element_type, array.shape), values.tobytes())

    @property
    def is_splat(self) -> bool:
        """Whether `data` contains a single element. This is also true of an empty tensor that was written as a
        splat."""
        return len(self.data.data) == dtype_of(self.type.element_type).itemsize

    def verify(self) -> None:
        try:
            size = dtype_of(self.type.element_type).itemsize
        except ValueError as error:
            raise VerifyException(str(error)) from error
        if len(self.data.data) not in (size * count_of(self.type), size):
            raise VerifyException(wrong_size(self.type, len(self.data.data), size))

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(dense_text(self.type, self.data.data))
        printer.print_string(" : ")
        printer.print_attribute(self.type)


def to_numpy(attr: DenseAttr | AnyDense) -> NDArray[Any]:
    """Return the constant as a read-only array of its shape. The array of a splat has one element, with stride
    zero."""
    dtype = dtype_of(attr.type.element_type)
    shape = attr.type.get_shape()
    values = np.frombuffer(attr.data.data if isinstance(attr, DenseAttr) else small_bits(attr), dtype)
    return np.broadcast_to(values.reshape(()), shape) if values.size == 1 else values.reshape(shape)


def small_bits(attr: AnyDense) -> bytes:
    """Return the bits of xDSL's own attribute as `DenseAttr` stores them: one element for a splat, and integers
    narrower than a byte zero-extended. xDSL sign-extends these integers."""
    dtype = dtype_of(attr.type.element_type)
    if isinstance(attr.data, SplatBytes):
        return mask_bits(attr.data.element, dtype)
    return collapse_splat(mask_bits(attr.data.data, dtype), dtype)


def standard_text(attr: AnyDense) -> str | None:
    """Return the bit-exact text `dense<…>` of xDSL's own attribute; None if numpy lacks its element type."""
    try:
        return dense_text(attr.type, small_bits(attr))
    except ValueError:
        return None


def to_small(attr: AnyDense) -> DenseAttr:
    """Convert xDSL's expanded attribute of tensor type to the equivalent `DenseAttr`."""
    assert is_tensor(attr.type), "a StableHLO constant must be a tensor"
    return DenseAttr(attr.type, BytesAttr(small_bits(attr)))


def to_standard(type: AnyShaped, raw: bytes) -> AnyDense:
    """Convert bits to xDSL's own attribute, for operations of other dialects. A splat is expanded only when its data
    are accessed."""
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
    """Create the attribute without xDSL's check of its data length. That check would expand a splat."""
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
