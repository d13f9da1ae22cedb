"""Operations that only reinterpret the elements of a tensor: in a different shape, order or type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_complex_type
from .checks import (
    Constraint,
    bits_of,
    check_distinct,
    check_element,
    check_shape,
    check_within,
    element_of,
    is_numeric,
    shape_of,
    verify_constraints,
)
from .extent_bounds import check_static_or_bounded
from .formats import FunctionTypeOp, Properties, i64_array, parse_field, print_field
from .quantized_types import QuantizedType, check_broadcast, same_parameters
from .tensors import tensors

I64_ARRAY = DenseArrayBase.constr(i64)


class ViewOp(FunctionTypeOp):
    """Base class of operations with one tensor as the operand and one tensor as the result."""

    operand = operand_def(tensors("I1"))
    result = result_def(TensorType)

    traits = traits_def(Pure())


def is_static(*values: SSAValue) -> bool:
    """Return whether all extents of the tensors are static."""
    return all(DYNAMIC_INDEX not in shape_of(value) for value in values)


@irdl_op_definition
class ReshapeOp(ViewOp):
    """Return the elements of the operand, in row-major order, in a different shape."""

    name = "stablehlo.reshape"

    def __init__(self, operand: SSAValue, result_type: Attribute):
        super().__init__(operands=[operand], result_types=[result_type])

    def verify_(self) -> None:
        if not same_parameters(element_of(self.result), element_of(self.operand)):
            check_element("C1: the result", element_of(self.result), element_of(self.operand))
        before, after = math.prod(shape_of(self.operand)), math.prod(shape_of(self.result))
        if is_static(self.operand, self.result) and before != after:
            raise VerifyException(f"C2: the result has {after} elements, but the operand has {before} elements")
        check_static_or_bounded("the result", self.result)
        _check_scales_kept(self.operand, self.result)


def _check_scales_kept(operand: SSAValue, result: SSAValue) -> None:
    """Check that the reshape does not change the scale of any element.

    Operand and result must have the same number of elements before the quantization dimension, and along it.
    """
    types = [QuantizedType.of(element_of(value)) for value in (operand, result)]
    before, after = (type_.dimension if type_ is not None else None for type_ in types)
    if before is None or after is None or not is_static(operand, result):
        return
    source, target = shape_of(operand), shape_of(result)
    for subject, first, second in (
        ("before the quantization dimension", math.prod(source[:before]), math.prod(target[:after])),
        ("along the quantization dimension", source[before], target[after]),
    ):
        if first != second:
            raise VerifyException(f"C3: the result has {second} elements {subject}, but the operand has {first}")


@irdl_op_definition
class BitcastConvertOp(ViewOp):
    """Reinterpret the bits of the operand as another element type. If the widths differ, a trailing dimension is added
    or dropped."""

    name = "stablehlo.bitcast_convert"

    def __init__(self, operand: SSAValue, result_type: Attribute):
        super().__init__(operands=[operand], result_types=[result_type])

    def verify_(self) -> None:
        verify_constraints(self, BITCAST_CONSTRAINTS)


@irdl_op_definition
class BroadcastInDimOp(ViewOp):
    """Repeat the operand along new dimensions.

    Dimension i of the operand becomes dimension `broadcast_dimensions[i]` of the result.
    """

    name = "stablehlo.broadcast_in_dim"

    broadcast_dimensions = prop_def(I64_ARRAY)

    SPELLED: ClassVar[tuple[str, ...]] = ("broadcast_dimensions",)

    def __init__(self, operand: SSAValue, dimensions: Sequence[int], result_type: Attribute):
        properties = {"broadcast_dimensions": i64_array(dimensions)}
        super().__init__(operands=[operand], result_types=[result_type], properties=properties)

    def verify_(self) -> None:
        dimensions = self.broadcast_dimensions.get_values()
        before, after = shape_of(self.operand), shape_of(self.result)
        check_within("C3: the dimensions", dimensions, len(after))
        check_distinct("C4: the dimensions", dimensions)
        if len(dimensions) != len(before):
            raise VerifyException(
                f"C2: the number of broadcast_dimensions is {len(dimensions)}, but the operand has rank {len(before)}"
            )
        for extent, dimension in zip(before, dimensions, strict=True):
            if extent not in (1, DYNAMIC_INDEX, after[dimension]):
                raise VerifyException(
                    f"C5: an extent of {extent} cannot be broadcast to an extent of {after[dimension]}"
                )
        check_static_or_bounded("the result", self.result)
        check_broadcast("C6", self.operand, self.result, dimensions)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {"broadcast_dimensions": parse_field(parser, "dims")}

    def print_own(self, printer: Printer) -> None:
        print_field(printer, "dims", self.broadcast_dimensions)


@irdl_op_definition
class TransposeOp(ViewOp):
    """Permute the dimensions: dimension i of the result is dimension `permutation[i]` of the operand."""

    name = "stablehlo.transpose"

    permutation = prop_def(I64_ARRAY)

    SPELLED: ClassVar[tuple[str, ...]] = ("permutation",)

    def __init__(self, operand: SSAValue, permutation: Sequence[int]):
        shape = shape_of(operand)
        result = TensorType(element_of(operand), [shape[dimension] for dimension in permutation])
        properties = {"permutation": i64_array(permutation)}
        super().__init__(operands=[operand], result_types=[result], properties=properties)

    def verify_(self) -> None:
        permutation = self.permutation.get_values()
        shape = shape_of(self.operand)
        if sorted(permutation) != list(range(len(shape))):
            raise VerifyException(
                f"C2: {list(permutation)} is not a permutation of the dimensions of {self.operand.type}"
            )
        check_shape("C3: the result", shape_of(self.result), [shape[dimension] for dimension in permutation])
        # Dimension i of the operand becomes the dimension of the result at which `permutation` contains i.
        places = [list(permutation).index(dimension) for dimension in range(len(shape))]
        check_broadcast("C4", self.operand, self.result, places)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {"permutation": parse_field(parser, "dims")}

    def print_own(self, printer: Printer) -> None:
        print_field(printer, "dims", self.permutation)


def _check_parts(op: BitcastConvertOp) -> None:
    """Check that the last dimension of the side with narrower elements contains the parts of each wider element."""
    before, after = shape_of(op.operand), shape_of(op.result)
    if abs(len(before) - len(after)) > 1:
        raise VerifyException("a bitcast must not add or drop more than one dimension")
    shared = min(len(before), len(after))
    check_shape("the result", after[:shared], before[:shared])
    old, new = bits_of(element_of(op.operand)), bits_of(element_of(op.result))
    if old is None or new is None:
        return
    whole = math.prod(after[shared:], start=new), math.prod(before[shared:], start=old)
    is_known = DYNAMIC_INDEX not in (*before[shared:], *after[shared:])
    if (old == new) != (len(before) == len(after)) or (is_known and whole[0] != whole[1]):
        raise VerifyException(
            f"{op.operand.type}, with elements of {old} bits, cannot be reinterpreted as {op.result.type}, with "
            f"elements of {new} bits"
        )


def _check_both_complex(op: BitcastConvertOp) -> None:
    sides = element_of(op.operand), element_of(op.result)
    if all(map(is_numeric, sides)) and is_complex_type(sides[0]) != is_complex_type(sides[1]):
        raise VerifyException(f"{sides[0]} cannot be reinterpreted as {sides[1]}: only one of them is complex")


BITCAST_CONSTRAINTS: tuple[Constraint[BitcastConvertOp], ...] = (
    Constraint("C2", _check_both_complex),
    Constraint("C1", _check_parts),
)

SHAPES: list[type[Operation]] = [
    ReshapeOp,
    BitcastConvertOp,
    BroadcastInDimOp,
    TransposeOp,
]
