"""Slices at run-time indices, with which a loop reads and writes one step of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .checks import check_element, check_shape, check_sizes, check_types, element_of, shape_of
from .formats import (
    FunctionTypeOp,
    Properties,
    i64_array,
    parse_all_operands,
    parse_assigned,
    parse_operands_before_field,
    print_field,
)
from .shapes import I64_ARRAY
from .tensors import NUMBERS


@irdl_op_definition
class DynamicSliceOp(FunctionTypeOp):
    """`stablehlo.dynamic_slice %a, %i, %j, sizes = [1, 4]`: the part that starts at the indices, kept within bounds."""

    name = "stablehlo.dynamic_slice"

    operand = operand_def(NUMBERS)
    start_indices = var_operand_def(NUMBERS)
    slice_sizes = prop_def(I64_ARRAY)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("slice_sizes",)

    def __init__(self, operand: SSAValue, starts: Sequence[SSAValue], sizes: Sequence[int]):
        result = TensorType(element_of(operand), sizes)
        super().__init__(
            operands=[operand, starts], result_types=[result], properties={"slice_sizes": i64_array(sizes)}
        )

    def verify_(self) -> None:
        sizes = self.slice_sizes.get_values()
        check_starts(self.start_indices, shape_of(self.operand), sizes, ("C2", "C2", "C3"))
        check_sizes("C4: a slice", sizes, shape_of(self.operand))
        check_element("C1: the result", element_of(self.result), element_of(self.operand))
        check_shape("C5: the result", shape_of(self.result), sizes)

    @classmethod
    def parse(cls, parser: Parser) -> DynamicSliceOp:
        start = parser.pos
        return cls.parse_rest(parser, parse_operands_before_field(parser), start)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {"slice_sizes": parse_assigned(parser, "sizes")}

    def print_own(self, printer: Printer) -> None:
        print_field(printer, "sizes", self.slice_sizes)


@irdl_op_definition
class DynamicUpdateSliceOp(FunctionTypeOp):
    """The operand, with the part that starts at the indices replaced by the update."""

    name = "stablehlo.dynamic_update_slice"

    operand = operand_def(NUMBERS)
    update = operand_def(NUMBERS)
    start_indices = var_operand_def(NUMBERS)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue, update: SSAValue, starts: Sequence[SSAValue]):
        super().__init__(operands=[operand, update, starts], result_types=[operand.type])

    def verify_(self) -> None:
        shape = shape_of(self.operand)
        check_starts(self.start_indices, shape, shape_of(self.update), ("C4", "C3", "C5"))
        static_extents = [extent if extent != DYNAMIC_INDEX else 0 for extent in shape_of(self.update)]
        check_sizes("C6: an update", static_extents, shape)
        check_element("C2: the update", element_of(self.update), element_of(self.operand))
        check_types("C1: the result", self.result.type, self.operand.type)

    @classmethod
    def parse(cls, parser: Parser) -> DynamicUpdateSliceOp:
        start = parser.pos
        return cls.parse_rest(parser, parse_all_operands(parser), start)


def check_starts(
    starts: Sequence[SSAValue], shape: Sequence[int], sizes: Sequence[int], labels: tuple[str, str, str]
) -> None:
    """One scalar index for each dimension, all of one type of integers.

    labels: Those of the constraints on the number of indices, on that of the sizes, and on the type of an index.
    """
    of_indices, of_sizes, of_type = labels
    for label, count in ((of_sizes, len(sizes)), (of_indices, len(starts))):
        if count != len(shape):
            words = f"{len(starts)} indices and {len(sizes)} sizes are given for {len(shape)} dimensions"
            raise VerifyException(f"{label}: {words}")
    for start in starts:
        check_shape(f"{of_type}: an index", shape_of(start), [])
        check_element(f"{of_type}: an index", element_of(start), element_of(starts[0]))
        if not isinstance(element_of(start), IntegerType):
            raise VerifyException(f"{of_type}: an index has elements of type {element_of(start)}, expected integers")


DYNAMIC: list[type[Operation]] = [DynamicSliceOp, DynamicUpdateSliceOp]
