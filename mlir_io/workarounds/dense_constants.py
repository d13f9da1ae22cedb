"""A workaround for dense constants, which makes xDSL preserve the bits of floats.

Without reporting an error, xDSL parses `dense<0xFF800000> : tensor<f32>`, minus infinity, as the integer 4286578688,
prints `dense<[0.0, -0.0]>` as `dense<0.0>`, and sets the quiet bit of NaNs when it prints them.
"""

from __future__ import annotations

import re
import sys
from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyDenseElement,
    AnyFloat,
    Builtin,
    BytesAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    RankedStructure,
    TensorType,
    f32,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from ...dialects.constants.dense import SplatBytes
from ...support.type_guards import AnyDense

MINUS_INFINITY = b"\x00\x00\x80\xff"
SIGNALLING_NAN = b"\x01\x00\x80\x7f"
TWO_ZEROS = b"\x00\x00\x00\x00\x00\x00\x00\x80"
_BARE_HEXADECIMAL = re.compile(r'(?<!")\b0[xX]')

_xdsl_parse_dense = AttrParser.parse_dense_int_or_fp_elements_attr
_xdsl_print_dense = DenseIntOrFPElementsAttr.print_without_type


def repair_dense() -> None:
    """Apply the workarounds for dense constants.

    This function never raises. If xDSL's internals are not as expected, it prints a warning to standard error.
    """
    try:
        if not reads_exactly():
            AttrParser.parse_dense_int_or_fp_elements_attr = _parse_dense
        if not writes_exactly():
            DenseIntOrFPElementsAttr.print_without_type = _print_dense
    except Exception as error:
        print(f"recompute: workaround for xDSL's dense constants not applied: {error}", file=sys.stderr)


def reads_exactly() -> bool:
    context = Context()
    context.load_dialect(Builtin)
    parsed = Parser(context, "dense<0xFF800000> : tensor<f32>").parse_attribute()
    return isinstance(parsed, DenseIntOrFPElementsAttr) and parsed.data.data == MINUS_INFINITY


def writes_exactly() -> bool:
    nan = DenseIntOrFPElementsAttr(TensorType(f32, []), BytesAttr(SIGNALLING_NAN))
    zeros = DenseIntOrFPElementsAttr(TensorType(f32, [2]), BytesAttr(TWO_ZEROS))
    return "7f800001" in _text(nan).lower() and "-0" in _text(zeros)


def _text(attribute: AnyDense) -> str:
    stream = StringIO()
    attribute.print_without_type(Printer(stream))
    return stream.getvalue()


def _parse_dense(self: AttrParser, type: RankedStructure[AnyDenseElement] | None) -> DenseIntOrFPElementsAttr:
    """Parse a dense constant, in which hexadecimal numbers are bit patterns of the element type.

    This replaces `AttrParser.parse_dense_int_or_fp_elements_attr`.
    """
    from ...dialects.constants.dense import to_standard
    from ...dialects.constants.dense_literal import parse_dense

    content, start = self.lexer.input.content, self.pos
    if not _BARE_HEXADECIMAL.search(content, start, max(content.find(">", start), start)):
        return _xdsl_parse_dense(self, type)
    try:
        return to_standard(*parse_dense(self, type))
    except ParseError as error:
        self._resume_from(start)  # pyright: ignore[reportPrivateUsage]
        if (integers := _parse_integers(self, type)) is None:
            raise error
        return integers


def _parse_integers(parser: AttrParser, type: RankedStructure[AnyDenseElement] | None) -> AnyDense | None:
    """Parse integers whose width numpy lacks, using xDSL's method.

    Returns None if this fails, and for floats: xDSL's method parses floats incorrectly.
    """
    try:
        parsed = _xdsl_parse_dense(parser, type)
    except (ParseError, NotImplementedError):
        return None
    return None if _holds_floats(parsed) else parsed


def _print_dense(self: AnyDense, printer: Printer) -> None:
    """Print a dense constant with the bits of NaNs and the signs of zeros.

    This replaces `DenseIntOrFPElementsAttr.print_without_type`.
    """
    from ...dialects.constants.dense import standard_text

    is_stored_once = isinstance(self.data, SplatBytes)
    text = standard_text(self) if is_stored_once or (_holds_floats(self) and _loses_bits(self)) else None
    if text is None:
        return _xdsl_print_dense(self, printer)
    return printer.print_string(text)


def _holds_floats(attribute: AnyDense) -> bool:
    element = attribute.get_element_type()
    return isinstance(element, AnyFloat) or (
        isinstance(element, ComplexType) and isinstance(element.element_type, AnyFloat)
    )


def _loses_bits(attribute: AnyDense) -> bool:
    """Return whether xDSL would lose bits of the constant: a value is a NaN, or all values are equal but their bits
    differ."""
    values = attribute.get_values()
    data = attribute.data.data
    if not values:
        return False
    if any(value != value for value in values):
        return True
    size = len(data) // len(values)
    return attribute.is_splat() and data != data[:size] * len(values)
