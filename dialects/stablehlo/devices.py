"""Operations that return the number of the executing device.

%0 = stablehlo.partition_id : tensor<ui32>
%1 = stablehlo.replica_id : tensor<ui32>
"""

from __future__ import annotations

from typing import Self

from xdsl.dialects.builtin import IntegerType, Signedness, TensorType
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from .checks import check_types
from .formats import parse_attributes, print_attributes

NUMBER = TensorType(IntegerType(32, Signedness.UNSIGNED), [])


class DeviceNumberOp(IRDLOperation):
    """A number that differs between devices."""

    result = result_def(TensorType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_types("the result", self.result.type, NUMBER)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        return cls.create(result_types=[parser.parse_type()], attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class PartitionIdOp(DeviceNumberOp):
    """The number of the executing partition."""

    name = "stablehlo.partition_id"


@irdl_op_definition
class ReplicaIdOp(DeviceNumberOp):
    """The number of the executing replica."""

    name = "stablehlo.replica_id"


DEVICES: list[type[Operation]] = [PartitionIdOp, ReplicaIdOp]
