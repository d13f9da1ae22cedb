"""Dense constants, exact bit for bit, in every element type.

xDSL 0.74 reads `dense<0xFF800000> : tensor<f32>` as the integer 4286578688, compares floats to find splats (so that
`[0.0, -0.0]` prints as `0.0`) and stores a splat once per element. `DenseAttr` stores bits, those of one element if all
are equal; so do xDSL's own attributes as parsed here. `parse_dense` and `dense_text` convert from and to text.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    AnyDenseElement,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    RankedStructure,
    TensorType,
)
from xdsl.ir import Attribute, BuiltinAttribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..support.type_guards import AnyDense, AnyShaped, AnyTensor, is_integer_type, is_tensor
from .dense_literal import count_of, dense_text, masked, parse_dense, shortest
from .elements import SUB_BYTE_BITS, dtype_of
from .splat import SplatBytes, splat_bytes


@irdl_attr_definition
class DenseAttr(ParametrizedAttribute, BuiltinAttribute):
    """The value of `stablehlo.constant`: `dense<…> : tensor<…>`, equal when the bits are equal.

    `data` has the bits of one element if all are equal, otherwise of all in row-major order. Build it with
    `DenseAttr.get`, which detects splats.
    """

    name = "stablehlo.dense"

    type: TensorType[Attribute]
    data: BytesAttr

    @staticmethod
    def get(type: AnyTensor, raw: bytes) -> DenseAttr:
        """From the bits of one element (a splat) or of all. Raises `VerifyException` for any other length."""
        return DenseAttr(type, BytesAttr(shortest(raw, dtype_of(type.element_type))))

    @staticmethod
    def from_numpy(array: NDArray[Any], element_type: Attribute) -> DenseAttr:
        """The array as a constant of its shape, converted to `element_type` as numpy does."""
        values = np.ascontiguousarray(array, dtype_of(element_type))
        return DenseAttr.get(TensorType(element_type, array.shape), values.tobytes())

    @property
    def is_splat(self) -> bool:
        """Whether the data are one element for all; also for an empty tensor that was written as a splat."""
        return len(self.data.data) == dtype_of(self.type.element_type).itemsize

    def verify(self) -> None:
        try:
            size = dtype_of(self.type.element_type).itemsize
        except ValueError as error:
            raise VerifyException(str(error)) from error
        if len(self.data.data) not in (size * count_of(self.type), size):
            raise VerifyException(f"{len(self.data.data)} bytes of data do not fill {self.type}")

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(dense_text(self.type, self.data.data))
        printer.print_string(" : ")
        printer.print_attribute(self.type)


def to_numpy(attr: DenseAttr | AnyDense) -> NDArray[Any]:
    """The constant as a read-only array of its shape; a splat is one element with stride zero."""
    dtype = dtype_of(attr.type.element_type)
    shape = attr.type.get_shape()
    values = np.frombuffer(attr.data.data if isinstance(attr, DenseAttr) else small_bits(attr), dtype)
    return np.broadcast_to(values.reshape(()), shape) if values.size == 1 else values.reshape(shape)


def small_bits(attr: AnyDense) -> bytes:
    """The bits of xDSL's own attribute, in the form of `DenseAttr`: xDSL sign-extends integers below a byte."""
    dtype = dtype_of(attr.type.element_type)
    if isinstance(attr.data, SplatBytes):
        return masked(attr.data.element, dtype)
    return shortest(masked(attr.data.data, dtype), dtype)


def standard_text(attr: AnyDense) -> str | None:
    """`dense<…>` for xDSL's own attribute, exact as `dense_text`; None for an element type that numpy lacks."""
    try:
        return dense_text(attr.type, small_bits(attr))
    except ValueError:
        return None


def to_small(attr: AnyDense) -> DenseAttr:
    """xDSL's expanded attribute of tensor type as a `DenseAttr`, the same constant."""
    assert is_tensor(attr.type), "only tensors are StableHLO constants"
    return DenseAttr(attr.type, BytesAttr(small_bits(attr)))


def to_standard(type: AnyShaped, raw: bytes) -> AnyDense:
    """xDSL's own attribute, for operations of other dialects; a splat is expanded when its data are accessed."""
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
    """The attribute without xDSL's check of its length, which would expand the data."""
    attr: AnyDense = object.__new__(DenseIntOrFPElementsAttr)
    object.__setattr__(attr, "type", type)
    object.__setattr__(attr, "data", data)
    return attr


def parse_constant(parser: AttrParser) -> DenseAttr:
    """Parse what follows the keyword `dense` as the value of a `stablehlo.constant`."""
    start = parser.pos
    type, raw = parse_dense(parser)
    if not is_tensor(type):
        parser.raise_error(f"a constant is a tensor, not {type}", start, parser.pos)
    return DenseAttr.get(type, raw)
