"""Errors and remarks of the command-line tools, each with a position and a message in one line.

Remarks can be selected by kind, and printed as JSON or YAML. Errors in the input are followed by the line of the input
and a caret, as in `mlir-opt`:

    step.mlir:2:23: error: %b is used but not defined
      %0 = stablehlo.tanh %b : tensor<4xf32>
                          ^

The YAML has the form of LLVM's optimization remarks. `opt-viewer` and `llvm-remarkutil` read this form:

    --- !Missed
    Pass:            recompute-mark
    Name:            recompute-mark
    DebugLoc:        { File: 'model.py', Line: 7, Column: 9 }
    Function:        step
    Args:
      - String:          'segment ''block1'' is not recomputed: …'
    ...
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, ParseError

from ...support.diagnostics import BadRequest, InvalidOperation, Refusal, position_of
from ...support.locations import name_without_position, source_position, text_line_of
from ...support.outlined_names import name_of_origin
from ...support.remarks import ON_REQUEST, Remark, RemarkKind, repetition_suffix

_PLACE = re.compile(r"(?P<file>.*):(?P<line>\d+):(?P<column>\d+)")


@dataclass(frozen=True)
class Diagnostic:
    """An error, a remark or a note. Lines and columns are counted from 1.

    Attributes:
        kind: "error", "remark" or "note".
        file: The name of the file.
        line: The line.
        column: The column.
        message: The message.
        category: The `RemarkKind` of a remark; "failure" for errors.
        pass_name: The pass that reports the diagnostic; "" outside passes.
        function: The symbol of the function that contains the operation; "" if there is none.
        source_line: The line of the input to which the diagnostic refers; "" if there is none.
        is_detail: Whether the diagnostic is printed only on request.
        amounts: The quantities in the message, by name: bytes, FLOPs or counts.
        count: The number of diagnostics with this message that are merged into this one.
        others: The positions of the diagnostics that were merged into this one.
    """

    kind: str
    file: str
    line: int
    column: int
    message: str
    category: str = ""
    pass_name: str = ""
    function: str = ""
    source_line: str = field(default="", compare=False)
    is_detail: bool = False
    amounts: tuple[tuple[str, int], ...] = ()
    count: int = 1
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.position}: {self.kind}: {self.message}{repetition_suffix(self.count, self.others)}"

    @property
    def position(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def to_json(self) -> str:
        """Return the diagnostic as a JSON object in one line, without empty fields."""
        parts = {name: getattr(self, name) for name in _IN_JSON}
        more = {"count": self.count, "others": self.others} if self.count > 1 else {}
        amounts = {"amounts": dict(self.amounts)} if self.amounts else {}
        return json.dumps({name: part for name, part in parts.items() if part != ""} | amounts | more)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Diagnostic:
        """Return the diagnostic that a JSON record, made with `dataclasses.asdict`, describes."""
        facts = dict(record)
        amounts, others = facts.pop("amounts"), facts.pop("others")
        pairs = tuple([(str(name), int(amount)) for name, amount in amounts])
        return cls(**facts, amounts=pairs, others=tuple(map(str, others)))

    def to_text(self) -> str:
        """Return the diagnostic as a line of text, followed by the source line and a caret if there is a source
        line."""
        if not self.source_line.strip():
            return str(self)
        line, column = _shorten(self.source_line, self.column - 1)
        # Tabs are repeated before the caret, since the terminal determines their width.
        indent = re.sub(r"[^\t]", " ", line[:column])
        return f"{self}\n{line}\n{indent}^"


_IN_JSON = ("kind", "file", "line", "column", "message", "category", "pass_name", "function")

MAX_SOURCE_LINE = 160
"""The maximum number of characters to print of a source line. If a line is longer, only the part around the caret is
printed."""
ELLIPSIS = "…"


def _shorten(line: str, column: int) -> tuple[str, int]:
    """Return the part of a source line to print, and the index of the caret in it."""
    if len(line) <= MAX_SOURCE_LINE:
        return line, column
    start = max(0, min(column - MAX_SOURCE_LINE // 2, len(line) - MAX_SOURCE_LINE))
    part = line[start : start + MAX_SOURCE_LINE]
    before, after = ELLIPSIS if start else "", ELLIPSIS if start + len(part) < len(line) else ""
    return f"{before}{part}{after}", column - start + len(before)


@dataclass(frozen=True)
class InputText:
    """The input to which diagnostics refer. If the text is not known, functions are reported at 1:1."""

    file: str
    text: str = ""

    def position_of(self, op: Operation, *, is_request: bool = False) -> str:
        """Return the position of an operation, `file:line:col`.

        A function without a position is reported at its definition in the input, not at the source line of an
        operation inside it. A module is always reported in the input.

        Args:
            op: The operation.
            is_request: Whether the diagnostic is about the request; such diagnostics are always reported in the input.
        """
        position = source_position(op.location)
        is_here = position is not None and position[0] == self.file
        is_whole = isinstance(op, ModuleOp) or (isinstance(op, FuncOp) and position is None)
        if (is_whole or is_request) and not is_here:
            line, column = self._place_of(_function_around(op))
            return f"{self.file}:{line}:{column}"
        return position_of(op)

    def text_position_of(self, op: Operation) -> str:
        """Return the position in the input from which the operation was parsed, `file:line:col`; "" if it is not
        known, or if the operation was parsed from another text.

        The column is the position of the operation's name, after its results.
        """
        line = text_line_of(op)
        if line is None or line.file != self.file:
            return ""
        text = "".join(self.text.split("\n")[line.line - 1 : line.line])
        before_name = re.match(r"[ \t]*(%[^=]*=[ \t]*)?", text)
        return f"{line.file}:{line.line}:{before_name.end() + 1 if before_name else 1}"

    def line_at(self, diagnostic: Diagnostic) -> str:
        """Return the line of the input to which a diagnostic refers; "" if it refers to another file."""
        lines = self.text.split("\n") if diagnostic.file == self.file else []
        return lines[diagnostic.line - 1].rstrip("\r") if diagnostic.line <= len(lines) else ""

    def _place_of(self, function: str) -> tuple[int, int]:
        """Return the line and the column of a function's definition. For an outlined function, this is the definition
        of the function from which it is outlined. The result is 1:1 if there is no definition."""
        names = dict.fromkeys([function, name_of_origin(function)]) if function else ()
        match = next((match for name in names if (match := self._definition_of(name)) is not None), None)
        if match is None:
            return 1, 1
        start = match.start(1)
        return self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)

    def _definition_of(self, function: str) -> re.Match[str] | None:
        name = re.escape(function)
        definition = rf'^[ \t]*(func\.func\b[^@\n]*@"?{name}"?\(|"func\.func"\([^\n]*sym_name = "{name}")'
        return re.search(definition, self.text, re.MULTILINE)


def of_remark(remark: Remark, source: InputText, pass_name: str = "") -> Diagnostic:
    """Convert a remark to a diagnostic.

    Args:
        remark: The remark.
        source: The input. A remark without a position is reported at 1:1.
        pass_name: The pass that reports the remark.
    """
    diagnostic = _at("remark", source.position_of(remark.operation), remark.reason, source.file)
    return replace(
        diagnostic,
        category=remark.kind.value,
        pass_name=pass_name,
        function=remark.function or _function_around(remark.operation),
        is_detail=remark.topic in ON_REQUEST,
        amounts=remark.amounts,
    )


def merge_remarks(remarks: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Merge remarks that differ only in their position. Return the resulting remarks."""
    groups = dict[tuple[object, ...], list[Diagnostic]]()
    for remark in remarks:
        key = remark.kind, remark.message, remark.category, remark.pass_name, remark.amounts
        groups.setdefault(key, []).append(remark)
    return [_merged(group) for group in groups.values()]


def _merged(group: Sequence[Diagnostic]) -> Diagnostic:
    """Merge remarks that differ only in their position. Return the first remark, with the number of merged remarks and
    the positions of the others.
    """
    positions = list(dict.fromkeys(place for remark in group for place in (remark.position, *remark.others)))
    return replace(group[0], count=sum(remark.count for remark in group), others=tuple(positions[1:]))


def of_exception(error: ParseError | DiagnosticException, source: InputText, pass_name: str = "") -> Diagnostic:
    """Convert an error to a diagnostic. An error without a position is reported at 1:1.

    A diagnostic for an error in the text includes the source line. A diagnostic for an error about the request, a
    function or the module has no source line.
    """
    if isinstance(error, ParseError):
        diagnostic, function = _of_parse_error(error), ""
        diagnostic = replace(diagnostic, source_line=source.line_at(diagnostic))
    elif isinstance(error, Refusal):
        is_request = isinstance(error, BadRequest)
        position = source.position_of(error.operation, is_request=is_request)
        diagnostic = _at("error", position, error.reason, source.file)
        in_text = source.text_position_of(error.operation) if isinstance(error, InvalidOperation) else ""
        if in_text and diagnostic.file != source.file:
            diagnostic = _at("error", in_text, f"{error.reason} (from {position})", source.file)
        if not (is_request or isinstance(error.operation, ModuleOp | FuncOp)):
            name = name_without_position(error.operation)
            message = f'{diagnostic.message} (at "{name}")' if name else diagnostic.message
            diagnostic = replace(diagnostic, message=message, source_line=source.line_at(diagnostic))
        function = _function_around(error.operation)
    else:
        diagnostic = Diagnostic("error", source.file, 1, 1, " ".join(str(error).split()))
        function = ""
    return replace(diagnostic, category=RemarkKind.FAILURE.value, pass_name=pass_name, function=function)


def _function_around(op: Operation | None) -> str:
    """Return the symbol of the function that contains the operation; "" if there is none."""
    while op is not None and not isinstance(op, FuncOp):
        op = op.parent_op()
    return "" if op is None else op.sym_name.data


def _of_parse_error(error: ParseError) -> Diagnostic:
    """Return a parse error as a diagnostic, without the source excerpt that xDSL prints."""
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


FORMATS = ("text", "json", "yaml")
"""The formats of remarks."""
CATEGORIES = tuple(kind.value for kind in RemarkKind)


def remarks_of_categories(
    remarks: Iterable[Diagnostic], categories: Sequence[str] | None, *, details: bool = True
) -> list[Diagnostic]:
    """Return the remarks of these categories, with repetitions merged; None selects all categories.

    `details`: whether to include remarks that are printed only on request.
    """
    selected = (remark for remark in remarks if categories is None or remark.category in categories)
    return merge_remarks(remark for remark in selected if details or not remark.is_detail)


def format_diagnostic(diagnostic: Diagnostic, form: str) -> str:
    """Return the diagnostic in one of `FORMATS`."""
    if form == "json":
        return diagnostic.to_json()
    return to_yaml(diagnostic) if form == "yaml" else diagnostic.to_text()


def to_yaml(diagnostic: Diagnostic) -> str:
    """Return the diagnostic as a YAML document in the format of LLVM's optimization remarks."""
    category = diagnostic.category or "analysis"
    place = f"{{ File: {_quote(diagnostic.file)}, Line: {diagnostic.line}, Column: {diagnostic.column} }}"
    entries = {
        "Pass": diagnostic.pass_name or "recompute-opt",
        "Name": diagnostic.pass_name or "recompute-opt",
        "DebugLoc": place,
        "Function": _quote(diagnostic.function or "<module>"),
    }
    lines = [f"{f'{key}:':<16} {value}" for key, value in entries.items()]
    message = f"{diagnostic.message}{repetition_suffix(diagnostic.count, diagnostic.others)}"
    amounts = {_key(name): str(amount) for name, amount in diagnostic.amounts}
    arguments = [f"  - {f'{key}:':<16} {_quote(text)}" for key, text in {"String": message, **amounts}.items()]
    return "\n".join([f"--- !{category.title()}", *lines, "Args:", *arguments, "..."])


def _key(name: str) -> str:
    """Return the name of an amount, spelt like the keys of LLVM's remarks: `FreedBytes`."""
    return "".join(word.title() for word in name.split("_"))


def _quote(text: str) -> str:
    return "'" + " ".join(text.split()).replace("'", "''") + "'"
