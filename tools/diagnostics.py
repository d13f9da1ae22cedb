"""Errors and remarks of the command-line tools: a position and a message, one line each."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from xdsl.utils.exceptions import DiagnosticException, ParseError

from ..support.diagnostics import Refusal, Remark, position_of

_PLACE = re.compile(r"(?P<file>.*):(?P<line>\d+):(?P<column>\d+)")


@dataclass(frozen=True)
class Diagnostic:
    """`kind` is "error", "remark" or "note". Line and column count from 1."""

    kind: str
    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.kind}: {self.message}"

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def of_remark(remark: Remark, file: str) -> Diagnostic:
    """A remark as a diagnostic. `file`: reported as its file, at 1:1, if it has no position."""
    return _at("remark", position_of(remark.operation), remark.reason, file)


def of_exception(error: ParseError | DiagnosticException, file: str) -> Diagnostic:
    """An error as a diagnostic; one without a position is reported at the beginning of the file."""
    if isinstance(error, ParseError):
        return _of_parse_error(error)
    if isinstance(error, Refusal):
        return _at("error", position_of(error.operation), error.reason, file)
    return Diagnostic("error", file, 1, 1, " ".join(str(error).split()))


def parse_error_line(error: ParseError) -> str:
    """`file:line:col: error: message`, without the source excerpt that xDSL prints."""
    return str(_of_parse_error(error))


def _of_parse_error(error: ParseError) -> Diagnostic:
    source = error.span.input
    text = source.content if isinstance(source.content, str) else source.content.decode("utf-8", "replace")
    start = min(error.span.start, len(text))
    line = text.count("\n", 0, start) + 1
    return Diagnostic("error", source.name, line, start - text.rfind("\n", 0, start), " ".join(error.msg.split()))


def _at(kind: str, position: str, message: str, file: str) -> Diagnostic:
    place = _PLACE.fullmatch(position)
    if place is None:
        return Diagnostic(kind, file, 1, 1, message)
    return Diagnostic(kind, place["file"], int(place["line"]), int(place["column"]), message)
