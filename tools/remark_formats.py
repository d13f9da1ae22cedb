"""Remarks as text, as JSON and as YAML, and their selection by kind.

The YAML is that of LLVM's optimization remarks, which `opt-viewer` and `llvm-remarkutil` read:

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

from collections.abc import Iterable, Sequence

from ..support.diagnostics import RemarkKind
from .diagnostics import Diagnostic

FORMATS = ("text", "json", "yaml")
CATEGORIES = tuple(kind.value for kind in RemarkKind)


def selected(remarks: Iterable[Diagnostic], categories: Sequence[str] | None) -> list[Diagnostic]:
    """The remarks of these kinds; all of them for None."""
    return [remark for remark in remarks if categories is None or remark.category in categories]


def formatted(diagnostic: Diagnostic, form: str) -> str:
    """The diagnostic in one of `FORMATS`."""
    if form == "json":
        return diagnostic.to_json()
    return to_yaml(diagnostic) if form == "yaml" else str(diagnostic)


def to_yaml(diagnostic: Diagnostic) -> str:
    """The diagnostic as one document of LLVM's remarks."""
    category = diagnostic.category or "analysis"
    place = f"{{ File: {_quoted(diagnostic.file)}, Line: {diagnostic.line}, Column: {diagnostic.column} }}"
    entries = {
        "Pass": diagnostic.pass_name or "recompute-opt",
        "Name": diagnostic.pass_name or "recompute-opt",
        "DebugLoc": place,
        "Function": _quoted(diagnostic.function or "<module>"),
    }
    lines = [f"{f'{key}:':<16} {value}" for key, value in entries.items()]
    message = f"  - String:          {_quoted(diagnostic.message)}"
    return "\n".join([f"--- !{category.title()}", *lines, "Args:", message, "..."])


def _quoted(text: str) -> str:
    return "'" + " ".join(text.split()).replace("'", "''") + "'"
