"""Repairs xDSL's own dense constants, for stock tools that load our plugin. The only change that we make to xDSL.

xDSL 0.73 and 0.74 read `dense<0xFF800000> : tensor<f32>`, minus infinity, as the integer 4286578688; write
`dense<[0.0, -0.0]>` as `dense<0.0>`; and quiet NaNs when they write them. None of it is said. Each repair is made only
where a test of it fails, and steps in only for text that xDSL gets wrong: everything else is read and written by xDSL.
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

from .guards import AnyDense
from .splat import SplatBytes

MINUS_INFINITY = b"\x00\x00\x80\xff"
SIGNALLING_NAN = b"\x01\x00\x80\x7f"
TWO_ZEROS = b"\x00\x00\x00\x00\x00\x00\x00\x80"
_BARE_HEXADECIMAL = re.compile(r'(?<!")\b0[xX]')

_xdsl_parses = AttrParser.parse_dense_int_or_fp_elements_attr
_xdsl_prints = DenseIntOrFPElementsAttr.print_without_type


def repair_dense() -> None:
    """Repair what is broken, once. Never raises: where xDSL differs from what we know, it is left alone and said."""
    try:
        if not reads_exactly():
            AttrParser.parse_dense_int_or_fp_elements_attr = _parse
        if not writes_exactly():
            DenseIntOrFPElementsAttr.print_without_type = _print
    except Exception as error:
        print(f"recompute: xDSL's dense constants are not repaired: {error}", file=sys.stderr)


def reads_exactly() -> bool:
    context = Context()
    context.load_dialect(Builtin)
    found = Parser(context, "dense<0xFF800000> : tensor<f32>").parse_attribute()
    return isinstance(found, DenseIntOrFPElementsAttr) and found.data.data == MINUS_INFINITY


def writes_exactly() -> bool:
    nan = DenseIntOrFPElementsAttr(TensorType(f32, []), BytesAttr(SIGNALLING_NAN))
    zeros = DenseIntOrFPElementsAttr(TensorType(f32, [2]), BytesAttr(TWO_ZEROS))
    return "7f800001" in _text(nan).lower() and "-0" in _text(zeros)


def _text(attribute: AnyDense) -> str:
    stream = StringIO()
    attribute.print_without_type(Printer(stream))
    return stream.getvalue()


def _parse(self: AttrParser, type: RankedStructure[AnyDenseElement] | None) -> DenseIntOrFPElementsAttr:
    """Replaces the method of the same name: hexadecimal numbers are read as the bits of the element type."""
    from .dense import to_standard
    from .dense_literal import parse_dense

    content, start = self.lexer.input.content, self.pos
    if not _BARE_HEXADECIMAL.search(content, start, max(content.find(">", start), start)):
        return _xdsl_parses(self, type)
    try:
        return to_standard(*parse_dense(self, type))
    except ParseError as error:
        self._resume_from(start)  # pyright: ignore[reportPrivateUsage]
        if (found := _integers(self, type)) is None:
            raise error
        return found


def _integers(parser: AttrParser, type: RankedStructure[AnyDenseElement] | None) -> AnyDense | None:
    """What xDSL reads, for integers of widths that numpy does not have; None for floats, which it gets wrong."""
    try:
        found = _xdsl_parses(parser, type)
    except (ParseError, NotImplementedError):
        return None
    return None if _holds_floats(found) else found


def _print(self: AnyDense, printer: Printer) -> None:
    """Replaces the method of the same name: NaNs keep their bits, zeros their sign."""
    from .dense import standard_text

    kept_once = isinstance(self.data, SplatBytes)
    text = standard_text(self) if kept_once or (_holds_floats(self) and _loses_bits(self)) else None
    if text is None:
        return _xdsl_prints(self, printer)
    return printer.print_string(text)


def _holds_floats(attribute: AnyDense) -> bool:
    element = attribute.get_element_type()
    return isinstance(element, AnyFloat) or (
        isinstance(element, ComplexType) and isinstance(element.element_type, AnyFloat)
    )


def _loses_bits(attribute: AnyDense) -> bool:
    """Whether some value is a NaN, or all compare as equal and are not the same."""
    values, data = attribute.get_values(), attribute.data.data
    if not values:
        return False
    if any(value != value for value in values):
        return True
    size = len(data) // len(values)
    return attribute.is_splat() and data != data[:size] * len(values)
