"""The dimension numbers of a convolution.

#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, …>

Constraints are those of `convolution` in StableHLO's specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .structs import Dimensions, parse_int64, parse_struct

ACTIVATIONS, KERNEL = ("b", "f"), ("i", "o")


@dataclass(frozen=True)
class ConvolutionDimensions:
    """The label of each dimension: `b` batch, `f` feature, `i` and `o` the kernel's features, a number if spatial."""

    lhs: tuple[str, ...]
    rhs: tuple[str, ...]
    result: tuple[str, ...]

    def __str__(self) -> str:
        lhs, rhs, result = (f"[{', '.join(labels)}]" for labels in (self.lhs, self.rhs, self.result))
        return f"{lhs}x{rhs}->{result}"


@dataclass(frozen=True)
class RawDimensions:
    """Dimension numbers of the raw form. Missing dimensions are 0, as in StableHLO."""

    input_batch_dimension: int = 0
    input_feature_dimension: int = 0
    input_spatial_dimensions: Dimensions = ()
    kernel_input_feature_dimension: int = 0
    kernel_output_feature_dimension: int = 0
    kernel_spatial_dimensions: Dimensions = ()
    output_batch_dimension: int = 0
    output_feature_dimension: int = 0
    output_spatial_dimensions: Dimensions = ()

    def labelled(self) -> ConvolutionDimensions:
        """The labels. Raises `ValueError` unless every dimension of each tensor is named once."""
        lhs = self.input_batch_dimension, self.input_feature_dimension, *self.input_spatial_dimensions
        rhs = (
            self.kernel_input_feature_dimension,
            self.kernel_output_feature_dimension,
            *self.kernel_spatial_dimensions,
        )
        result = self.output_batch_dimension, self.output_feature_dimension, *self.output_spatial_dimensions
        return ConvolutionDimensions(
            _labelled("C13: the dimensions of the input", ACTIVATIONS, lhs),
            _labelled("C18: the dimensions of the kernel", KERNEL, rhs),
            _labelled("C20: the dimensions of the output", ACTIVATIONS, result),
        )


def _labelled(subject: str, features: Sequence[str], numbers: Sequence[int]) -> tuple[str, ...]:
    if sorted(numbers) != list(range(len(numbers))):
        raise ValueError(f"{subject} are {list(numbers)}, expected each from 0 to {len(numbers) - 1} once")
    labels = dict(zip(numbers, [*features, *map(str, range(len(numbers) - 2))], strict=True))
    return tuple(labels[number] for number in range(len(numbers)))


@irdl_attr_definition
class ConvolutionAttr(Data[ConvolutionDimensions]):
    """`#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`"""

    name = "stablehlo.conv"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ConvolutionDimensions:
        parser.parse_punctuation("<")
        start = parser.pos
        if parser.parse_optional_keyword("raw") is None:
            numbers = cls.parse_labels(parser)
            parser.parse_punctuation(">")
            return numbers
        raw = parse_struct(parser, RawDimensions)
        try:
            return raw.labelled()
        except ValueError as error:
            parser.raise_error(str(error), start, parser.pos)

    @staticmethod
    def parse_labels(parser: AttrParser) -> ConvolutionDimensions:
        """Parse the text between the angle brackets."""
        lhs = _parse_labels(parser, ACTIVATIONS)
        parser.parse_keyword("x")
        rhs = _parse_labels(parser, KERNEL)
        parser.parse_punctuation("->")
        return ConvolutionDimensions(lhs, rhs, _parse_labels(parser, ACTIVATIONS))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


def _parse_labels(parser: AttrParser, features: Sequence[str]) -> tuple[str, ...]:
    """`[b, 0, 1, f]`: each feature once, and as many numbers as there are other dimensions, from zero."""

    def label() -> str:
        return parser.parse_optional_identifier() or str(parse_int64(parser))

    start = parser.pos
    labels = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, label)
    expected = [*features, *map(str, range(len(labels) - 2))]
    if sorted(labels) != sorted(expected):
        parser.raise_error(f"expected the labels {', '.join(expected)} in some order", start, parser.pos)
    return tuple(labels)
