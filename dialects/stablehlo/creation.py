"""Operations without operands: constants and counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self, TypedDict, Unpack

from xdsl.dialects.builtin import (
    DenseResourceAttr,
    IntegerAttr,
    LocationAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_standard_dense, is_tensor
from ..constants.dense import DenseAttr, parse_constant, to_small
from .attributes import parse_int64
from .checks import (
    check_dimensions,
    check_element,
    check_shape,
    check_static,
    check_types,
    element_of,
    is_number,
    is_numeric,
    shape_of,
)
from .formats import I64_ATTR, parse_attributes, print_attributes, print_function_type
from .quantized_types import QuantizedType


class _CreateArguments(TypedDict, total=False):
    """The keyword arguments of `Operation.create`, except for the properties."""

    operands: Sequence[SSAValue]
    result_types: Sequence[Attribute]
    attributes: Mapping[str, Attribute]
    location: LocationAttr | None
    successors: Sequence[Block]
    regions: Sequence[Region]


class DenseConstantOp(IRDLOperation):
    """Return a constant: `constant dense<…> : tensor<…>`. A splat of any shape stores only one element."""

    value = prop_def(DenseAttr | DenseResourceAttr)
    output = result_def(TensorType)

    def __init__(self, value: DenseAttr | DenseResourceAttr):
        super().__init__(result_types=[value.type], properties={"value": value})

    @classmethod
    def create(cls, *, properties: Mapping[str, Attribute] = {}, **parts: Unpack[_CreateArguments]) -> Self:
        """Create the operation as `Operation.create` does, but convert the value to a `DenseAttr`.

        xDSL's own parser creates a different, expanded attribute, but equal constants must have equal attributes.
        """
        value = properties.get("value")
        if value is not None and is_standard_dense(value) and is_tensor(value.type):
            properties = {**properties, "value": to_small(value)}
        return super().create(properties=properties, **parts)

    def verify_(self) -> None:
        if is_numeric(element_of(self.output)):
            return check_types("C1: the result", self.output.type, self.value.type)
        # A quantized constant is written as its stored integers.
        check_shape("C1: the result", shape_of(self.output), self.value.type.get_shape())
        quantized = QuantizedType.of(element_of(self.output))
        if quantized is not None and is_tensor(self.value.type):
            check_element("C1: the constant", self.value.type.element_type, quantized.storage)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        if parser.parse_optional_punctuation("(") is not None:
            return cls._parse_in_full(parser)
        _, attributes = parse_attributes(parser, cls, ("value",))
        value = _parse_value(parser)
        return cls.create(result_types=[value.type], properties={"value": value}, attributes=attributes)

    @classmethod
    def _parse_in_full(cls, parser: Parser) -> Self:
        """Parse the form for a result and a value that differ in type: `) <{value = dense<…> : type}> : () -> type`."""
        parser.parse_punctuation(")")
        inline_properties = parser.parse_optional_properties_dict()
        other_properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        start = parser.pos
        types = parser.parse_function_type()
        if types.inputs.data:
            parser.raise_error("a constant must not have operands", start, parser.pos)
        return cls.create(
            result_types=types.outputs.data, properties={**other_properties, **inline_properties}, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        if self.value.type != self.output.type:
            return self._print_in_full(printer)
        print_attributes(printer, self, ("value",))
        printer.print_string(" ")
        printer.print_attribute(self.value)

    def _print_in_full(self, printer: Printer) -> None:
        printer.print_string("() ")
        with printer.in_angle_brackets():
            printer.print_attr_dict(self.properties)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        print_function_type(printer, self)


@irdl_op_definition
class ConstantOp(DenseConstantOp):
    """Return a constant: `stablehlo.constant dense<…> : tensor<…>`"""

    name = "stablehlo.constant"

    traits = traits_def(ConstantLike(), Pure())


def _parse_value(parser: Parser) -> DenseAttr | DenseResourceAttr:
    """Parse a dense constant, `dense<…> : type`, a resource, or an alias of either. Splats are not expanded."""
    if parser.parse_optional_keyword("dense") is not None:
        return parse_constant(parser)
    start = parser.pos
    value = parser.parse_attribute()
    if is_standard_dense(value) and is_tensor(value.type):
        return to_small(value)
    if not isinstance(value, DenseResourceAttr):
        parser.raise_error("expected the value of the constant, 'dense<…>'", start, parser.pos)
    return value


@irdl_op_definition
class IotaOp(IRDLOperation):
    """Return a tensor in which the value of each element is its index along a dimension.

    stablehlo.iota dim = 0 : tensor<…>
    """

    name = "stablehlo.iota"

    iota_dimension = prop_def(I64_ATTR)
    output = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, dimension: int, result_type: Attribute):
        super().__init__(result_types=[result_type], properties={"iota_dimension": IntegerAttr(dimension, i64)})

    def verify_(self) -> None:
        check_dimensions("C1: the dimension", [self.iota_dimension.value.data], len(shape_of(self.output)))
        check_static("the result", self.output)
        if not is_number(element_of(self.output)):
            raise VerifyException(f"the result has elements of type {element_of(self.output)}, expected a numeric type")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        parser.parse_keyword("dim")
        parser.parse_punctuation("=")
        dimension = IntegerAttr(parse_int64(parser), i64)
        _, attributes = parse_attributes(parser, cls, ("iota_dimension",))
        parser.parse_punctuation(":")
        properties = {"iota_dimension": dimension}
        return cls.create(result_types=[parser.parse_type()], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" dim = {self.iota_dimension.value.data}")
        print_attributes(printer, self, ("iota_dimension",))
        printer.print_string(" : ")
        printer.print_attribute(self.output.type)


CREATION: list[type[Operation]] = [ConstantOp, IotaOp]
