"""Check diagnostics against comments in the input: `// expected-error {{words}}`, `-warning`, `-remark`.

A comment applies to its own line; `@+1` and `@-2` to a line further down or up, `@above` and `@below` to the adjacent
lines, and `@unknown` to any line. The words must occur in the message. Every expected diagnostic must be reported, and
every reported one expected, as with `mlir-opt --verify-diagnostics`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .diagnostics import Diagnostic

# Match any kind and any place, so that a misspelt comment is an error: no diagnostic matches it.
_COMMENT = re.compile(r"//.*?expected-(?P<kind>[\w-]+)(?:@(?P<where>[^\s{]*))?\s*\{\{(?P<words>.*?)\}\}")
_OFFSETS = {"": 0, "above": -1, "below": 1}
_NO_LINE = 0


@dataclass(frozen=True)
class Expected:
    """A comment. `line`: the line that it applies to; None for any. `comment_line`: its own line."""

    kind: str
    line: int | None
    words: str
    comment_line: int

    def matches(self, diagnostic: Diagnostic) -> bool:
        if self.kind != diagnostic.kind or self.line not in (None, diagnostic.line):
            return False
        return self.words in diagnostic.message


def expected_in(text: str) -> Iterator[Expected]:
    for number, line in enumerate(text.splitlines(), 1):
        for match in _COMMENT.finditer(line):
            yield Expected(match["kind"], _line(match["where"] or "", number), match["words"], number)


def _line(where: str, number: int) -> int | None:
    """The line that `@where` in line `number` refers to; None for any."""
    if where == "unknown":
        return None
    if where in _OFFSETS:
        return number + _OFFSETS[where]
    return number + int(where) if re.fullmatch(r"[+-]\d+", where) else _NO_LINE


def mismatches(text: str, name: str, reported: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Errors for diagnostics that were expected and not reported, and for those reported and not expected."""
    unmatched, missing = list(reported), list[Diagnostic]()
    # Comments with a line take their match before those without.
    for expected in sorted(expected_in(text), key=lambda comment: comment.line is None):
        match = next((diagnostic for diagnostic in unmatched if expected.matches(diagnostic)), None)
        if match is None:
            message = f"expected {expected.kind} was not reported: {expected.words}"
            missing.append(Diagnostic("error", name, expected.comment_line, 1, message))
        else:
            unmatched.remove(match)
    unexpected = [Diagnostic("error", d.file, d.line, d.column, f"unexpected {d.kind}: {d.message}") for d in unmatched]
    return [*missing, *unexpected]
