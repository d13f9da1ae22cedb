"""Parser errors as one located line."""

from __future__ import annotations

from xdsl.utils.exceptions import ParseError


def parse_error_line(error: ParseError) -> str:
    """`file:line:col: error: what is wrong`, without the source excerpt that xDSL prints."""
    source = error.span.input
    start = min(error.span.start, len(source.content))
    before = source.content[:start]
    newline = "\n" if isinstance(before, str) else b"\n"
    line = before.count(newline) + 1  # pyright: ignore[reportArgumentType]
    column = start - before.rfind(newline)  # pyright: ignore[reportArgumentType]
    message = " ".join(error.msg.split())
    return f"{source.name}:{line}:{column}: error: {message}"
