"""`stablehlo.convolution`.

%y = stablehlo.convolution(%x, %w)
    dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 1], pad = [[0, 1], [1, 1]], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (t, u) -> v
"""

from __future__ import annotations

from itertools import chain
from typing import ClassVar, Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..guards import is_integer_array
from .checks import check_shape, shape_of
from .enumerations import PrecisionAttr
from .formats import FunctionTypeOp, Properties, i64_array, parse_operands, print_attributes
from .records import ConvolutionAttr, parse_dimensions
from .shapes import I64_ARRAY, is_static
from .windows import padding_of, windows

WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


@irdl_op_definition
class ConvolutionOp(FunctionTypeOp):
    """Products of windows of the left operand with the right one, summed up."""

    name = "stablehlo.convolution"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    window_strides = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def()
    lhs_dilation = opt_prop_def(I64_ARRAY)
    rhs_dilation = opt_prop_def(I64_ARRAY)
    window_reversal = opt_prop_def(DenseArrayBase.constr(i1))
    dimension_numbers = prop_def(ConvolutionAttr)
    feature_group_count = prop_def(IntegerAttr[IntegerType])
    batch_group_count = prop_def(IntegerAttr[IntegerType])
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(TensorType)

    traits = traits_def(Pure())

    ARITY: ClassVar[int] = 2
    SPELLED: ClassVar[tuple[str, ...]] = ("dimension_numbers", *WINDOW.values())

    def verify_(self) -> None:
        numbers = self.dimension_numbers.data
        values = (self.lhs, self.rhs, self.result)
        for labels, value in zip((numbers.lhs, numbers.rhs, numbers.result), values, strict=True):
            if len(labels) != len(shape_of(value)):
                raise VerifyException(f"{len(labels)} dimensions are labelled for {value.type}")
        if not is_static(*values):
            return
        lhs, rhs, result = (
            dict(zip(labels, shape_of(value), strict=True))
            for labels, value in zip((numbers.lhs, numbers.rhs, numbers.result), values, strict=True)
        )
        spatial = [label for label in numbers.rhs if label.isdigit()]
        sizes = [rhs[label] for label in sorted(spatial, key=int)]
        moves = windows(sizes, self.window_strides, self.padding, self.lhs_dilation, self.rhs_dilation)
        expected = {str(index): move.places(lhs[str(index)]) for index, move in enumerate(moves)}
        expected |= {"b": lhs["b"] // self.batch_group_count.value.data, "f": rhs["o"]}
        check_shape("the result", list(result.values()), [expected[label] for label in result])
        if rhs["i"] * self.feature_group_count.value.data != lhs["f"]:
            raise VerifyException(f"{lhs['f']} input features are read by a kernel for {rhs['i']}")

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
        fields = parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _parse_field(parser))
        return {"dimension_numbers": numbers, **dict(fields)}

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


def _parse_field(parser: Parser) -> tuple[str, Attribute]:
    """One part of the window, by its keyword."""
    start = parser.pos
    keyword = parser.parse_identifier()
    parser.parse_punctuation("=")
    if keyword not in WINDOW:
        parser.raise_error(f"expected one of {', '.join(WINDOW)}", start, parser.pos)
    if keyword == "pad":
        return WINDOW[keyword], _padding(
            parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_dimensions(parser))
        )
    values = parse_dimensions(parser)
    return WINDOW[keyword], DenseArrayBase.from_list(i1, values) if keyword == "reverse" else i64_array(values)


def _padding(pairs: list[tuple[int, ...]]) -> Attribute:
    return DenseIntOrFPElementsAttr.from_list(TensorType(i64, [len(pairs), 2]), list(chain(*pairs)))


def _text(value: Attribute) -> str:
    """The value of a part of the window in brackets."""
    if not is_integer_array(value):
        return str([list(pair) for pair in padding_of(value)])
    if value.elt_type == i1:
        return str([bool(one) for one in value.get_values()]).lower()
    return str(list(value.get_values()))


CONVOLUTION: list[type[Operation]] = [ConvolutionOp]
