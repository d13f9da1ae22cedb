"""Convert between the text of dense constants, `dense<[1.0, -0.0]>`, and their bits, in every element type."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType
from xdsl.ir import Attribute
from xdsl.parser import AttrParser

from ...support.type_guards import AnyShaped, is_shaped
from .elements import SUB_BYTE_BITS, DType, Element, dtype_of, encode, formatter

Nested: TypeAlias = "str | list[Nested]"
_LITERAL = re.compile(r'<(?:[^>"/]++|"[^"\n]*+"|//[^\n]*+|/)*+>')
_COMMENT = re.compile(r"//[^\n]*")
_AFTER_MINUS = re.compile(r"-\s+")
# A possessive repetition of one character class: a repeated group would keep a state for each repetition.
_HEXADECIMAL_STRING = re.compile(r'[ \t\r\n]*+"0x([0-9A-Fa-f]*+)"[ \t\r\n]*+')
_NOT_HEXADECIMAL = "expected a string of hexadecimal digits, two for each byte, that starts with 0x"
PIECE = 1 << 20
"""The number of bytes that are converted to or from text at a time, to avoid another copy of a large constant."""
MAX_LIST = 100
"""The maximum number of elements that are printed one by one. Longer constants are printed in hexadecimal."""


def count_of(type: ShapedType) -> int:
    return math.prod(type.get_shape())


def collapse_splat(raw: bytes, dtype: DType) -> bytes:
    """Return the bits of one element if all elements are equal, otherwise all bits."""
    first = raw[: dtype.itemsize]
    return first if raw and _repeats(raw, first) else raw


def _repeats(raw: bytes, element: bytes) -> bool:
    """Return whether the data consist of repetitions of the element."""
    piece = element * min(PIECE, len(raw) // len(element))
    whole = len(raw) - len(raw) % len(piece)
    return (
        raw.endswith(element)
        and all(raw.startswith(piece, start) for start in range(0, whole, len(piece)))
        and raw[whole:] == piece[: len(raw) - whole]
    )


def mask_bits(raw: bytes, dtype: DType) -> bytes:
    """Clear the bits beyond the width of the element type. For i1, any non-zero byte becomes true."""
    if dtype not in SUB_BYTE_BITS:
        return raw
    values = np.frombuffer(raw, np.uint8)
    significant = values != 0 if dtype == np.bool_ else values & (1 << SUB_BYTE_BITS[dtype]) - 1
    return significant.astype(np.uint8).tobytes()


def parse_dense(parser: AttrParser, type: Attribute | None = None) -> tuple[AnyShaped, bytes]:
    """Parse the text after the keyword `dense`: `<…> : type`, or only `<…>` if `type` is given.

    Returns the type, and the bits of all elements, or of one element for a splat. Raises `ParseError` at the literal if
    it does not match the type.
    """
    start = parser.pos
    content = parser.lexer.input.content
    literal = _LITERAL.match(content, start)
    if literal is None:
        parser.raise_error("expected '<' literal '>' after 'dense'")
    end = literal.end() - 1
    # The lexer skips the literal: reading a large one token by token takes minutes.
    parser.lexer.pos = end
    parser.parse_punctuation("<", " in dense attribute")
    parser.parse_punctuation(">", " in dense attribute")
    if type is None:
        parser.parse_punctuation(":", " in dense attribute")
        type = parser.parse_type()
    if not is_shaped(type) or DYNAMIC_INDEX in type.get_shape():
        parser.raise_error(f"a dense attribute must have a type of static shape, not {type}", start, end + 1)
    try:
        return type, literal_bits(content, type, start + 1, end)
    except ValueError as error:
        parser.raise_error(str(error), start, end + 1)


def literal_bits(content: str, type: AnyShaped, start: int, end: int) -> bytes:
    """Return the bits of the literal `content[start:end]`, the text between `dense<` and `>`. As in MLIR, an empty
    tensor may be written as a splat. The element of the splat is preserved. Raises `ValueError` if the literal does not
    match `type`.
    """
    element_type = type.element_type
    dtype = dtype_of(element_type)
    digits = _HEXADECIMAL_STRING.fullmatch(content, start, end)
    literal = "" if digits else _COMMENT.sub("", content[start:end])
    if digits is None and '"' in literal:
        digits = _HEXADECIMAL_STRING.fullmatch(literal)
        if digits is None:
            raise ValueError(_NOT_HEXADECIMAL)
    if digits is not None:
        raw = mask_bits(_bytes_of_digits(digits.string, *digits.span(1)), dtype)
        if len(raw) not in (dtype.itemsize, dtype.itemsize * count_of(type)):
            raise ValueError(wrong_size(type, len(raw), dtype.itemsize))
        return collapse_splat(raw, dtype)
    elements, shape = _tensor_literal(literal)
    if not elements and count_of(type):
        raise ValueError(f"an empty literal does not match {type}")
    if shape is not None and shape != type.get_shape():
        raise ValueError(f"a literal of shape {list(shape)} does not match {type}")
    return collapse_splat(encode(elements, element_type), dtype)


def wrong_size(type: AnyShaped, size: int, element_size: int) -> str:
    """Return the message for a constant with a wrong number of bytes."""
    expected = element_size * count_of(type)
    return f"a constant of type {type} has {size} bytes of data, expected {expected}, or {element_size} for a splat"


def _bytes_of_digits(content: str, start: int, end: int) -> bytes:
    """Return the bytes of the hexadecimal digits at `content[start:end]`."""
    if (end - start) % 2:
        raise ValueError(_NOT_HEXADECIMAL)
    length = 2 * PIECE
    pieces = (bytes.fromhex(content[at : min(at + length, end)]) for at in range(start, end, length))
    return b"".join(pieces)


def _tensor_literal(literal: str) -> tuple[list[Element], tuple[int, ...] | None]:
    """Return the elements in row-major order, and the shape that the brackets imply. Without brackets, the shape is
    None."""
    if not literal.strip():
        return [], None
    try:
        level: list[Nested] = [json.loads(_quote(literal), strict=False)]
    except json.JSONDecodeError as error:
        raise ValueError("expected a number, or numbers in nested brackets") from error
    shape: list[int] = []
    while rows := [part for part in level if isinstance(part, list)]:
        if len(rows) != len(level) or len({len(row) for row in rows}) != 1:
            raise ValueError("tensor literal is invalid: its rows differ in length or rank")
        shape.append(len(rows[0]))
        level = [element for row in rows for element in row]
    elements = [_element(text) for text in level if isinstance(text, str)]
    return elements, tuple(shape) or None


def _quote(literal: str) -> str:
    """Return the literal as JSON, with each scalar as a string."""
    return _ATOM.sub(r'"\g<0>"', _AFTER_MINUS.sub("-", literal))


_ATOM = re.compile(r'\([^()"\\]*\)|[^\s\[\](),"\\]+')


def _element(text: str) -> Element:
    if not text.startswith("("):
        return text
    real, comma, imaginary = text[1:-1].partition(",")
    if not comma:
        raise ValueError(f"'{text}' is not a complex number, expected '(real,imaginary)'")
    return real.strip(), imaginary.strip()


def dense_text(type: AnyShaped, raw: bytes) -> str:
    """Return the text `dense<…>`, without the type. MLIR parses it to the same bits.

    `raw`: the bits of all elements, or of one element for a splat.
    """
    return "".join(dense_pieces(type, raw))


def dense_pieces(type: AnyShaped, raw: bytes) -> Iterator[str]:
    """Yield the text of `dense_text` in pieces. A hexadecimal string is divided into pieces of bounded length."""
    if len(raw) <= MAX_LIST * dtype_of(type.element_type).itemsize:
        yield f"dense<{_literal(type, raw)}>"
        return
    yield 'dense<"0x'
    for start in range(0, len(raw), PIECE):
        yield raw[start : start + PIECE].hex().upper()
    yield '">'


def _literal(type: AnyShaped, raw: bytes) -> str:
    size = dtype_of(type.element_type).itemsize
    if not raw:
        return ""
    text = formatter(type.element_type)
    if len(raw) == size:
        # A splat has no brackets.
        return text(raw)
    parts = [text(raw[start : start + size]) for start in range(0, len(raw), size)]
    for extent in reversed(type.get_shape()):
        parts = [f"[{', '.join(parts[start : start + extent])}]" for start in range(0, len(parts), extent)]
    return parts[0]
