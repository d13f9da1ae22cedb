"""Attributes of StableHLO: enumerations and records. Most records contain dimension numbers.

#stablehlo<precision DEFAULT>
#stablehlo.dot<lhs_contracting_dimensions = [1], …>
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, get_type_hints

from xdsl.dialects.builtin import ArrayAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Data, SpacedOpaqueSyntaxAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Precision(StrEnum):
    DEFAULT = "DEFAULT"
    HIGH = "HIGH"
    HIGHEST = "HIGHEST"


class ComparisonDirection(StrEnum):
    EQ = "EQ"
    NE = "NE"
    GE = "GE"
    GT = "GT"
    LE = "LE"
    LT = "LT"


class ComparisonType(StrEnum):
    NOTYPE = "NOTYPE"
    FLOAT = "FLOAT"
    TOTALORDER = "TOTALORDER"
    SIGNED = "SIGNED"
    UNSIGNED = "UNSIGNED"


class RngAlgorithm(StrEnum):
    DEFAULT = "DEFAULT"
    THREE_FRY = "THREE_FRY"
    PHILOX = "PHILOX"


class FftType(StrEnum):
    FFT = "FFT"
    IFFT = "IFFT"
    RFFT = "RFFT"
    IRFFT = "IRFFT"


class Transpose(StrEnum):
    TRANSPOSE_INVALID = "TRANSPOSE_INVALID"
    NO_TRANSPOSE = "NO_TRANSPOSE"
    TRANSPOSE = "TRANSPOSE"
    ADJOINT = "ADJOINT"


class RngDistribution(StrEnum):
    UNIFORM = "UNIFORM"
    NORMAL = "NORMAL"


@irdl_attr_definition
class PrecisionAttr(EnumAttribute[Precision], SpacedOpaqueSyntaxAttribute):
    """The precision of an operand of a contraction."""

    name = "stablehlo.precision"


def check_precisions(precisions: ArrayAttr[PrecisionAttr] | None) -> None:
    """Check that there are at most two precisions, one for each operand."""
    if precisions is not None and len(precisions) > 2:
        raise VerifyException(f"there are {len(precisions)} precisions, expected at most two")


@irdl_attr_definition
class ComparisonDirectionAttr(EnumAttribute[ComparisonDirection], SpacedOpaqueSyntaxAttribute):
    """The relation that `stablehlo.compare` tests."""

    name = "stablehlo.comparison_direction"


@irdl_attr_definition
class ComparisonTypeAttr(EnumAttribute[ComparisonType], SpacedOpaqueSyntaxAttribute):
    """The order that `stablehlo.compare` uses; NaN and -0.0 differ between the orders."""

    name = "stablehlo.comparison_type"


@irdl_attr_definition
class RngAlgorithmAttr(EnumAttribute[RngAlgorithm], SpacedOpaqueSyntaxAttribute):
    """The algorithm that `stablehlo.rng_bit_generator` uses."""

    name = "stablehlo.rng_algorithm"


@irdl_attr_definition
class FftTypeAttr(EnumAttribute[FftType], SpacedOpaqueSyntaxAttribute):
    """The kind of transform that `stablehlo.fft` computes."""

    name = "stablehlo.fft_type"


@irdl_attr_definition
class TransposeAttr(EnumAttribute[Transpose], SpacedOpaqueSyntaxAttribute):
    """Whether `stablehlo.triangular_solve` transposes its matrix, and whether it also conjugates the matrix."""

    name = "stablehlo.transpose"


@irdl_attr_definition
class RngDistributionAttr(EnumAttribute[RngDistribution], SpacedOpaqueSyntaxAttribute):
    """The distribution that `stablehlo.rng` draws from."""

    name = "stablehlo.rng_distribution"


ENUMERATIONS: list[type[Attribute]] = [
    PrecisionAttr,
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    RngAlgorithmAttr,
    FftTypeAttr,
    TransposeAttr,
    RngDistributionAttr,
]


Dimensions: TypeAlias = tuple[int, ...]
RecordT = TypeVar("RecordT", bound="DataclassInstance")


def parse_int64(parser: AttrParser) -> int:
    start = parser.pos
    value = parser.parse_integer()
    if not -(1 << 63) <= value < 1 << 63:
        parser.raise_error(f"{value} does not fit in 64 bits", start, parser.pos)
    return value


def parse_dimensions(parser: AttrParser) -> Dimensions:
    """Parse a list of dimensions: `[0, 1]`"""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_int64(parser)))


_READERS: dict[Any, Callable[[AttrParser], Any]] = {
    Dimensions: parse_dimensions,
    int: parse_int64,
    bool: lambda parser: parser.parse_boolean(),
    TypeAttribute: lambda parser: parser.parse_type(),
}


@cache
def _readers(record: type[DataclassInstance]) -> Mapping[str, Callable[[AttrParser], Any]]:
    return {name: _READERS[kind] for name, kind in get_type_hints(record).items()}


def parse_struct(parser: AttrParser, record: type[RecordT]) -> RecordT:
    """Parse the entries of a record, `name = value, …>`, in any order.

    Entries with default values may be omitted, and a trailing comma is allowed.
    """
    readers = _readers(record)
    values: dict[str, Any] = {}
    while parser.parse_optional_punctuation(">") is None:
        start = parser.pos
        name = parser.parse_optional_identifier()
        if name is None or name not in readers:
            parser.raise_error(f"expected one of the entries {', '.join(readers)}", start)
        if name in values:
            parser.raise_error(f"the entry {name} is given twice", start, parser.pos)
        parser.parse_punctuation("=")
        values[name] = readers[name](parser)
        if parser.parse_optional_punctuation(",") is None:
            parser.parse_punctuation(">")
            break
    return record(**values)


class RecordAttribute(Data[RecordT], Generic[RecordT]):
    """Base class of attributes such as `<name = [0, 1], other = 2>`. Only the fields of the dataclass that differ from
    their defaults are printed."""

    RECORD: ClassVar[type[Any]]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> RecordT:
        parser.parse_punctuation("<")
        return parse_struct(parser, cls.RECORD)

    def print_parameter(self, printer: Printer) -> None:
        entries = [(field, getattr(self.data, field.name)) for field in fields(self.data)]
        shown = [(field.name, value) for field, value in entries if value != field.default]
        with printer.in_angle_brackets():
            printer.print_list(shown, lambda entry: _print_entry(printer, *entry))


class OrderedRecordAttribute(RecordAttribute[RecordT], Generic[RecordT]):
    """Base class of attributes whose printed text contains all fields of the dataclass, in order."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> RecordT:
        values: list[Any] = []
        with parser.in_angle_brackets():
            for name, read in _readers(cls.RECORD).items():
                if values:
                    parser.parse_punctuation(",")
                parser.parse_keyword(name)
                parser.parse_punctuation("=")
                values.append(read(parser))
        return cls.RECORD(*values)


def _print_entry(printer: Printer, name: str, value: Dimensions | bool | int | TypeAttribute) -> None:
    printer.print_string(f"{name} = ")
    if isinstance(value, Attribute):
        printer.print_attribute(value)
    elif isinstance(value, tuple):
        printer.print_string(str(list(value)))
    else:
        printer.print_string(str(value).lower())


@dataclass(frozen=True)
class DotDimensions:
    """The dimensions that a contraction pairs. The result has the batching dimensions; the contracting dimensions are
    summed over."""

    lhs_batching_dimensions: Dimensions = ()
    rhs_batching_dimensions: Dimensions = ()
    lhs_contracting_dimensions: Dimensions = ()
    rhs_contracting_dimensions: Dimensions = ()


@dataclass(frozen=True)
class GatherDimensions:
    """The roles of the dimensions of the operand, the indices and the result of a gather."""

    offset_dims: Dimensions = ()
    collapsed_slice_dims: Dimensions = ()
    operand_batching_dims: Dimensions = ()
    start_indices_batching_dims: Dimensions = ()
    start_index_map: Dimensions = ()
    index_vector_dim: int = 0


@dataclass(frozen=True)
class ScatterDimensions:
    """The roles of the dimensions of the inputs, the indices and the updates of a scatter."""

    update_window_dims: Dimensions = ()
    inserted_window_dims: Dimensions = ()
    input_batching_dims: Dimensions = ()
    scatter_indices_batching_dims: Dimensions = ()
    scatter_dims_to_operand_dims: Dimensions = ()
    index_vector_dim: int = 0


@dataclass(frozen=True)
class DotAlgorithm:
    """The arithmetic that a contraction requires of the hardware."""

    lhs_precision_type: TypeAttribute
    rhs_precision_type: TypeAttribute
    accumulation_type: TypeAttribute
    lhs_component_count: int
    rhs_component_count: int
    num_primitive_operations: int
    allow_imprecise_accumulation: bool


@dataclass(frozen=True)
class OutputOperandAlias:
    """A result and an operand of a custom call that share a buffer. A tuple is represented by one of its elements."""

    output_tuple_indices: Dimensions
    operand_index: int
    operand_tuple_indices: Dimensions


@irdl_attr_definition
class DotAttr(RecordAttribute[DotDimensions]):
    """The dimension numbers of `dot_general`: `#stablehlo.dot<…>`"""

    name = "stablehlo.dot"
    RECORD: ClassVar[type] = DotDimensions


@irdl_attr_definition
class GatherAttr(RecordAttribute[GatherDimensions]):
    """The dimension numbers of `gather`: `#stablehlo.gather<…>`"""

    name = "stablehlo.gather"
    RECORD: ClassVar[type] = GatherDimensions


@irdl_attr_definition
class ScatterAttr(RecordAttribute[ScatterDimensions]):
    """The dimension numbers of `scatter`: `#stablehlo.scatter<…>`"""

    name = "stablehlo.scatter"
    RECORD: ClassVar[type] = ScatterDimensions


@irdl_attr_definition
class DotAlgorithmAttr(OrderedRecordAttribute[DotAlgorithm]):
    """The algorithm of `dot_general`: `#stablehlo.dot_algorithm<…>`"""

    name = "stablehlo.dot_algorithm"
    RECORD: ClassVar[type] = DotAlgorithm


@irdl_attr_definition
class OutputOperandAliasAttr(OrderedRecordAttribute[OutputOperandAlias]):
    """An alias of a custom call's result and operand: `#stablehlo.output_operand_alias<…>`"""

    name = "stablehlo.output_operand_alias"
    RECORD: ClassVar[type] = OutputOperandAlias


RECORDS: list[type[Attribute]] = [
    DotAttr,
    DotAlgorithmAttr,
    GatherAttr,
    ScatterAttr,
    OutputOperandAliasAttr,
]
