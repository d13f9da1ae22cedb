"""Attributes that are records, of dimension numbers mostly: `#stablehlo.dot<lhs_contracting_dimensions = [1], …>`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

Dimensions: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class DotDimensions:
    """Which dimensions a contraction pairs: batching ones are kept, contracting ones are summed over."""

    lhs_batching_dimensions: Dimensions = ()
    rhs_batching_dimensions: Dimensions = ()
    lhs_contracting_dimensions: Dimensions = ()
    rhs_contracting_dimensions: Dimensions = ()


@dataclass(frozen=True)
class GatherDimensions:
    """Which dimensions of operand, indices and result belong together in a gather."""

    offset_dims: Dimensions = ()
    collapsed_slice_dims: Dimensions = ()
    operand_batching_dims: Dimensions = ()
    start_indices_batching_dims: Dimensions = ()
    start_index_map: Dimensions = ()
    index_vector_dim: int = 0


@dataclass(frozen=True)
class ScatterDimensions:
    """Which dimensions of inputs, indices and updates belong together in a scatter."""

    update_window_dims: Dimensions = ()
    inserted_window_dims: Dimensions = ()
    input_batching_dims: Dimensions = ()
    scatter_indices_batching_dims: Dimensions = ()
    scatter_dims_to_operand_dims: Dimensions = ()
    index_vector_dim: int = 0


@dataclass(frozen=True)
class DotAlgorithm:
    """The arithmetic that a contraction asks the hardware for."""

    lhs_precision_type: TypeAttribute
    rhs_precision_type: TypeAttribute
    accumulation_type: TypeAttribute
    lhs_component_count: int
    rhs_component_count: int
    num_primitive_operations: int
    allow_imprecise_accumulation: bool


RecordT = TypeVar("RecordT", DotDimensions, GatherDimensions, ScatterDimensions, DotAlgorithm)


class RecordAttribute(Data[RecordT], Generic[RecordT]):
    """`<name = [0, 1], other = 2>`: the fields of a dataclass by name; those at their default are left out."""

    RECORD: ClassVar[type]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> RecordT:
        start = parser.pos
        entries = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _parse_entry(parser))
        values = dict(entries)
        required = {field.name for field in fields(cls.RECORD) if field.default is MISSING}
        if len(values) != len(entries):
            parser.raise_error("an entry is given twice", start, parser.pos)
        if not required <= values.keys() <= {field.name for field in fields(cls.RECORD)}:
            names = ", ".join(field.name for field in fields(cls.RECORD))
            parser.raise_error(f"#{cls.name} has the entries {names}", start, parser.pos)
        for field in fields(cls.RECORD):
            if field.default is not MISSING and type(values.get(field.name, field.default)) is not type(field.default):
                parser.raise_error(f"entry {field.name} is of another kind", start, parser.pos)
        return cls.RECORD(**values)

    def print_parameter(self, printer: Printer) -> None:
        entries = [(field, getattr(self.data, field.name)) for field in fields(self.data)]
        shown = [(field.name, value) for field, value in entries if value != field.default]
        with printer.in_angle_brackets():
            printer.print_list(shown, lambda entry: _print_entry(printer, *entry))


def _parse_entry(parser: AttrParser) -> tuple[str, Any]:
    name = parser.parse_identifier()
    parser.parse_punctuation("=")
    dimensions = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    if dimensions is not None:
        return name, tuple(dimensions)
    if (flag := parser.parse_optional_boolean()) is not None:
        return name, flag
    number = parser.parse_optional_integer(allow_boolean=False)
    return name, parser.parse_type() if number is None else number


def _print_entry(printer: Printer, name: str, value: Dimensions | bool | int | TypeAttribute) -> None:
    printer.print_string(f"{name} = ")
    if isinstance(value, Attribute):
        printer.print_attribute(value)
    elif isinstance(value, tuple):
        printer.print_string(str(list(value)))
    else:
        printer.print_string(str(value).lower())


def parse_dimensions(parser: AttrParser) -> Dimensions:
    """`[0, 1]`"""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))


@irdl_attr_definition
class DotAttr(RecordAttribute[DotDimensions]):
    """`#stablehlo.dot<…>`, the dimension numbers of `dot_general`."""

    name = "stablehlo.dot"
    RECORD: ClassVar[type] = DotDimensions


@irdl_attr_definition
class GatherAttr(RecordAttribute[GatherDimensions]):
    """`#stablehlo.gather<…>`"""

    name = "stablehlo.gather"
    RECORD: ClassVar[type] = GatherDimensions


@irdl_attr_definition
class ScatterAttr(RecordAttribute[ScatterDimensions]):
    """`#stablehlo.scatter<…>`"""

    name = "stablehlo.scatter"
    RECORD: ClassVar[type] = ScatterDimensions


@irdl_attr_definition
class DotAlgorithmAttr(RecordAttribute[DotAlgorithm]):
    """`#stablehlo.dot_algorithm<…>`"""

    name = "stablehlo.dot_algorithm"
    RECORD: ClassVar[type] = DotAlgorithm


@dataclass(frozen=True)
class ConvolutionDimensions:
    """What each dimension is: `b` batch, `f` feature, `i` and `o` the kernel's features, a number for a spatial one."""

    lhs: tuple[str, ...]
    rhs: tuple[str, ...]
    result: tuple[str, ...]

    def __str__(self) -> str:
        lhs, rhs, result = (f"[{', '.join(labels)}]" for labels in (self.lhs, self.rhs, self.result))
        return f"{lhs}x{rhs}->{result}"


@irdl_attr_definition
class ConvolutionAttr(Data[ConvolutionDimensions]):
    """`#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`"""

    name = "stablehlo.conv"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ConvolutionDimensions:
        with parser.in_angle_brackets():
            return cls.parse_labels(parser)

    @staticmethod
    def parse_labels(parser: AttrParser) -> ConvolutionDimensions:
        """What stands between the angle brackets."""
        lhs = _parse_labels(parser)
        parser.parse_keyword("x")
        rhs = _parse_labels(parser)
        parser.parse_punctuation("->")
        return ConvolutionDimensions(lhs, rhs, _parse_labels(parser))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


def _parse_labels(parser: AttrParser) -> tuple[str, ...]:
    def label() -> str:
        return parser.parse_optional_identifier() or str(parser.parse_integer())

    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, label))


RECORDS: list[type[Attribute]] = [DotAttr, DotAlgorithmAttr, GatherAttr, ScatterAttr, ConvolutionAttr]
