"""`stablehlo.convolution` and `stablehlo.dynamic_conv`, and their dimension numbers.

#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, …>

Constraints follow `convolution` in StableHLO's specification.

    %y = stablehlo.convolution(%x, %w)
        dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {stride = [2, 1], pad = [[0, 1], [1, 1]], rhs_dilate = [1, 1], reverse = [false, false]}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (t, u) -> v
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar, Self

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Data, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_integer_array
from .attributes import Dimensions, PrecisionAttr, check_precisions, parse_dimensions, parse_int64, parse_struct
from .checks import (
    Constraint,
    check_count,
    check_element,
    check_shape,
    element_of,
    is_numeric,
    shape_of,
    verify_constraints,
)
from .dynamic_shapes import constant_integers
from .formats import I64_ATTR, FunctionTypeOp, Properties, i64_array, parse_operands, print_attributes
from .quantized_types import ProductLabels, QuantizedType, check_quantized_product, is_quantized
from .shapes import I64_ARRAY
from .tensors import numbers, tensors
from .windows import DimWindow, check_positive, moving, padding_of, pairs_of, windows

ACTIVATIONS, KERNEL = ("b", "f"), ("i", "o")


@dataclass(frozen=True)
class ConvolutionDimensions:
    """The label of each dimension: `b` for batch, `f` for features, `i` and `o` for the kernel's input and output
    features, and a number for a spatial dimension."""

    lhs: tuple[str, ...]
    rhs: tuple[str, ...]
    result: tuple[str, ...]

    def __str__(self) -> str:
        lhs, rhs, result = (f"[{', '.join(labels)}]" for labels in (self.lhs, self.rhs, self.result))
        return f"{lhs}x{rhs}->{result}"


@dataclass(frozen=True)
class RawDimensions:
    """The dimension numbers of the raw form. As in StableHLO, a missing dimension is 0."""

    input_batch_dimension: int = 0
    input_feature_dimension: int = 0
    input_spatial_dimensions: Dimensions = ()
    kernel_input_feature_dimension: int = 0
    kernel_output_feature_dimension: int = 0
    kernel_spatial_dimensions: Dimensions = ()
    output_batch_dimension: int = 0
    output_feature_dimension: int = 0
    output_spatial_dimensions: Dimensions = ()

    def labels(self) -> ConvolutionDimensions:
        """Return the label of each dimension. Raises `ValueError` unless each dimension has exactly one role."""
        lhs = self.input_batch_dimension, self.input_feature_dimension, *self.input_spatial_dimensions
        rhs = (
            self.kernel_input_feature_dimension,
            self.kernel_output_feature_dimension,
            *self.kernel_spatial_dimensions,
        )
        result = self.output_batch_dimension, self.output_feature_dimension, *self.output_spatial_dimensions
        return ConvolutionDimensions(
            _labels("C13: the dimensions of the input", ACTIVATIONS, lhs),
            _labels("C18: the dimensions of the kernel", KERNEL, rhs),
            _labels("C20: the dimensions of the output", ACTIVATIONS, result),
        )


def _labels(subject: str, features: Sequence[str], numbers: Sequence[int]) -> tuple[str, ...]:
    if sorted(numbers) != list(range(len(numbers))):
        raise ValueError(f"{subject} are {list(numbers)}, expected a permutation of 0 to {len(numbers) - 1}")
    labels = dict(zip(numbers, [*features, *map(str, range(len(numbers) - 2))], strict=True))
    return tuple(labels[number] for number in range(len(numbers)))


@irdl_attr_definition
class ConvolutionAttr(Data[ConvolutionDimensions]):
    """The dimension numbers of a convolution: `#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`"""

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
            return raw.labels()
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
    """Parse dimension labels such as `[b, 0, 1, f]`: each of the labels `features` once, and consecutive numbers from
    zero for the spatial dimensions."""

    def label() -> str:
        return parser.parse_optional_identifier() or str(parse_int64(parser))

    start = parser.pos
    labels = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, label)
    expected = [*features, *map(str, range(len(labels) - 2))]
    if sorted(labels) != sorted(expected):
        parser.raise_error(f"expected the labels {', '.join(expected)} in some order", start, parser.pos)
    return tuple(labels)


WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


class ConvolvingOp(IRDLOperation):
    """Base class of convolutions, with the properties that they share."""

    lhs = operand_def(numbers("I1"))
    rhs = operand_def(tensors("I2"))
    window_strides = opt_prop_def(I64_ARRAY)
    lhs_dilation = opt_prop_def(I64_ARRAY)
    rhs_dilation = opt_prop_def(I64_ARRAY)
    window_reversal = opt_prop_def(DenseArrayBase.constr(i1))
    dimension_numbers = prop_def(ConvolutionAttr)
    feature_group_count = prop_def(I64_ATTR)
    batch_group_count = prop_def(I64_ATTR)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(TensorType)

    traits = traits_def(Pure())


@irdl_op_definition
class ConvolutionOp(ConvolvingOp, FunctionTypeOp):
    """Convolve the left operand with the right operand, the kernel: multiply each window by the kernel, and sum the
    products."""

    name = "stablehlo.convolution"

    lhs = operand_def(numbers("I1"))
    rhs = operand_def(tensors("I2"))
    window_strides = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def()
    lhs_dilation = opt_prop_def(I64_ARRAY)
    rhs_dilation = opt_prop_def(I64_ARRAY)
    window_reversal = opt_prop_def(DenseArrayBase.constr(i1))
    dimension_numbers = prop_def(ConvolutionAttr)
    feature_group_count = prop_def(I64_ATTR)
    batch_group_count = prop_def(I64_ATTR)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(TensorType)

    traits = traits_def(Pure())

    ARITY: ClassVar[int] = 2
    SPELLED: ClassVar[tuple[str, ...]] = ("dimension_numbers", *WINDOW.values())

    def verify_(self) -> None:
        verify_constraints(self, CONSTRAINTS)
        _check_quantized(self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        with parser.in_parens():
            operands = parse_operands(parser, cls.ARITY)
        return cls.parse_rest(parser, operands, start)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_keyword("dim_numbers")
        parser.parse_punctuation("=")
        numbers = ConvolutionAttr(ConvolutionAttr.parse_labels(parser))
        parser.parse_punctuation(",")
        parser.parse_keyword("window")
        parser.parse_punctuation("=")
        return {"dimension_numbers": numbers, **_parse_window(parser)}

    def print(self, printer: Printer) -> None:
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_operand)
        printer.print_string(f" dim_numbers = {self.dimension_numbers.data}, window = {{")
        fields = ((keyword, self.properties.get(name)) for keyword, name in WINDOW.items())
        printer.print_string(", ".join(f"{keyword} = {_text(value)}" for keyword, value in fields if value is not None))
        printer.print_string("}")
        print_attributes(printer, self, self.SPELLED)
        printer.print_string(" : ")
        self.print_types(printer)


def _parse_window(parser: Parser) -> Properties:
    """Parse a window, `{stride = [2, 1], pad = [[0, 1], [1, 1]]}`; a trailing comma is allowed."""
    fields: Properties = {}
    parser.parse_punctuation("{")
    while parser.parse_optional_punctuation("}") is None:
        start = parser.pos
        keyword = parser.parse_identifier()
        if keyword not in WINDOW:
            parser.raise_error(f"expected one of {', '.join(WINDOW)}", start, parser.pos)
        if WINDOW[keyword] in fields:
            parser.raise_error(f"{keyword} is given twice", start, parser.pos)
        parser.parse_punctuation("=")
        fields[WINDOW[keyword]] = _parse_field(parser, keyword)
        if parser.parse_optional_punctuation(",") is None:
            parser.parse_punctuation("}")
            break
    return fields


def _parse_field(parser: Parser, keyword: str) -> Attribute:
    """Parse the value of one field of the window."""
    if keyword == "pad":
        pairs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_pair(parser))
        return DenseIntOrFPElementsAttr.from_list(TensorType(i64, [len(pairs), 2]), list(chain(*pairs)))
    values = parse_dimensions(parser)
    return DenseArrayBase.from_list(i1, [value != 0 for value in values]) if keyword == "reverse" else i64_array(values)


def _parse_pair(parser: Parser) -> Dimensions:
    start = parser.pos
    pair = parse_dimensions(parser)
    if len(pair) != 2:
        parser.raise_error("expected two numbers, the padding before and after: [0, 0]", start, parser.pos)
    return pair


def _text(value: Attribute) -> str:
    """Return the text of one field of the window, in brackets."""
    if not is_integer_array(value):
        return str([list(pair) for pair in pairs_of(value)])
    if value.elt_type == i1:
        return str([bool(flag) for flag in value.get_values()]).lower()
    return str(list(value.get_values()))


def _spatial(op: ConvolvingOp) -> int:
    return len(shape_of(op.lhs)) - 2


def _check_labels(labels: Sequence[str], value: SSAValue) -> None:
    if len(labels) != len(shape_of(value)):
        raise VerifyException(
            f"there are {len(labels)} dimension labels, expected one for each dimension of {value.type}"
        )


def _extent(value: SSAValue, labels: Sequence[str], label: str) -> int:
    return shape_of(value)[labels.index(label)]


def _check_divides(op: ConvolvingOp, side: str, label: str, groups: str) -> None:
    """Check that the number of groups divides the extent of the dimension."""
    extent = _extent(getattr(op, side), getattr(op.dimension_numbers.data, side), label)
    count = getattr(op, groups).value.data
    if extent != DYNAMIC_INDEX and extent % count:
        raise VerifyException(
            f"the extent {extent} of dimension {label} of {side} is not a multiple of {groups} ({count})"
        )


def _check_one_kind_of_group(op: ConvolvingOp) -> None:
    features, batches = op.feature_group_count.value.data, op.batch_group_count.value.data
    if features > 1 and batches > 1:
        raise VerifyException(
            f"feature_group_count is {features} and batch_group_count is {batches}, but one of them must be 1"
        )


def _check_input_features(op: ConvolvingOp) -> None:
    numbers = op.dimension_numbers.data
    kernel_features, input_features = _extent(op.rhs, numbers.rhs, "i"), _extent(op.lhs, numbers.lhs, "f")
    groups = op.feature_group_count.value.data
    if DYNAMIC_INDEX not in (kernel_features, input_features) and kernel_features * groups != input_features:
        raise VerifyException(
            f"the kernel has {kernel_features} input features, expected {input_features}/{groups}, the features of "
            "lhs divided by feature_group_count"
        )


def _check_reversal(op: ConvolvingOp) -> None:
    if op.window_reversal is not None and len(op.window_reversal):
        check_count("window_reversal", len(op.window_reversal), _spatial(op))


def _check_elements(op: ConvolvingOp) -> None:
    lhs, rhs = element_of(op.lhs), element_of(op.rhs)
    if is_numeric(lhs) and is_numeric(rhs):
        check_element("the kernel", rhs, lhs)


def _check_quantized(op: ConvolvingOp) -> None:
    """Check the element types of quantized operands and results: constraints C28 to C34."""
    if not is_quantized(op.lhs, op.rhs, op.result):
        return
    lhs, rhs, result = (element_of(value) for value in (op.lhs, op.rhs, op.result))
    check_quantized_product(QUANTIZED, lhs, rhs, result)
    numbers = op.dimension_numbers.data
    for label, subject, element, features in (
        ("C29", "the right operand", rhs, numbers.rhs.index("o")),
        ("C30", "the result", result, numbers.result.index("f")),
    ):
        type_ = QuantizedType.of(element)
        if type_ is not None and type_.dimension not in (None, features):
            raise VerifyException(
                f"{label}: the quantization dimension of {subject} is {type_.dimension}, expected {features}, the "
                "dimension of the output features"
            )


QUANTIZED = ProductLabels(quantized="C28", storage="C31", expressed="C32", granularity="C33", hybrid="C34")


def _sizes(op: ConvolvingOp) -> list[int]:
    return [_extent(op.rhs, op.dimension_numbers.data.rhs, str(index)) for index in range(_spatial(op))]


def _check_sizes(op: ConvolvingOp) -> None:
    check_positive("the extents of the window", [size for size in _sizes(op) if size != DYNAMIC_INDEX])


def _check_result(op: ConvolutionOp) -> None:
    moves = windows(_sizes(op), op.window_strides, op.padding, op.lhs_dilation, op.rhs_dilation)
    _check_places(op, moves)


def _check_places(op: ConvolvingOp, moves: Sequence[DimWindow]) -> None:
    """Check the shape of the result, given the window along each spatial dimension."""
    numbers = op.dimension_numbers.data
    expected = {str(index): move.places(_extent(op.lhs, numbers.lhs, str(index))) for index, move in enumerate(moves)}
    batch = _extent(op.lhs, numbers.lhs, "b")
    groups = op.batch_group_count.value.data
    expected["b"] = batch if batch == DYNAMIC_INDEX else batch // groups
    expected["f"] = _extent(op.rhs, numbers.rhs, "o")
    check_shape("the result", shape_of(op.result), [expected[label] for label in numbers.result])


IN_COMMON: tuple[Constraint[ConvolvingOp], ...] = (
    Constraint("C21", lambda op: check_positive("feature_group_count", [op.feature_group_count.value.data])),
    Constraint("C22", lambda op: check_positive("batch_group_count", [op.batch_group_count.value.data])),
    Constraint("C23", _check_one_kind_of_group),
    Constraint("C1", lambda op: check_count("dimensions of rhs", len(shape_of(op.rhs)), len(shape_of(op.lhs)))),
    Constraint("C27", _check_elements),
    Constraint("C12", lambda op: _check_labels(op.dimension_numbers.data.lhs, op.lhs)),
    Constraint("C17", lambda op: _check_labels(op.dimension_numbers.data.rhs, op.rhs)),
    Constraint("C19", lambda op: _check_labels(op.dimension_numbers.data.result, op.lhs)),
    Constraint("C26", lambda op: _check_labels(op.dimension_numbers.data.result, op.result)),
    Constraint("C10", lambda op: _check_divides(op, "lhs", "b", "batch_group_count")),
    Constraint("C11", lambda op: _check_divides(op, "lhs", "f", "feature_group_count")),
    Constraint("C14", _check_input_features),
    Constraint("C15", lambda op: _check_divides(op, "rhs", "o", "batch_group_count")),
    Constraint("C16", lambda op: _check_divides(op, "rhs", "o", "feature_group_count")),
    Constraint("C24", lambda op: check_precisions(op.precision_config)),
    *moving({"window_strides": ("C2", "C3"), "lhs_dilation": ("C5", "C6"), "rhs_dilation": ("C7", "C8")}, _spatial),
    Constraint("C9", _check_reversal),
    Constraint("C25", _check_sizes),
)
CONSTRAINTS: tuple[Constraint[ConvolutionOp], ...] = (
    *IN_COMMON,
    Constraint("C4", lambda op: padding_of(op.padding, _spatial(op))),
    Constraint("C25", _check_result),
)


@irdl_op_definition
class DynamicConvOp(ConvolvingOp):
    """Convolve as `convolution` does, but with the padding given by an operand. StableHLO prints the operation in
    generic form."""

    name = "stablehlo.dynamic_conv"

    lhs = operand_def(numbers("I1"))
    rhs = operand_def(tensors("I2"))
    padding = operand_def(numbers("I3"))

    def verify_(self) -> None:
        verify_constraints(self, DYNAMIC_CONSTRAINTS)
        _check_quantized(self)


def _check_padding(op: DynamicConvOp) -> None:
    check_shape("the padding", shape_of(op.padding), [_spatial(op), 2])


def _check_dynamic_result(op: DynamicConvOp) -> None:
    """Check the shape of the result. If the padding is not constant, check only the batch and feature dimensions."""
    amounts = constant_integers(op.padding)
    moves = windows(_sizes(op), op.window_strides, None, op.lhs_dilation, op.rhs_dilation)
    if amounts is None:
        # A window of unknown size has an unknown number of positions.
        return _check_places(op, [replace(move, size=DYNAMIC_INDEX) for move in moves])
    pairs = zip(amounts[::2], amounts[1::2], strict=True)
    _check_places(op, [replace(move, low=low, high=high) for move, (low, high) in zip(moves, pairs, strict=True)])


DYNAMIC_CONSTRAINTS: tuple[Constraint[DynamicConvOp], ...] = (
    *IN_COMMON,
    Constraint("C4", _check_padding),
    Constraint("C25", _check_dynamic_result),
)

CONVOLUTION: list[type[Operation]] = [ConvolutionOp, DynamicConvOp]
