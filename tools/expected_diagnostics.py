"""`// expected-error {{words}}`, `-warning`, `-remark`: comments in the input say what must be reported.

A comment speaks of its own line; `@+1`, `@-2` of a line further down or up, `@above` and `@below` of the neighbours,
and `@unknown` of any. The words must occur in the message. Everything expected must be reported and everything reported
expected, as `mlir-opt --verify-diagnostics` has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .diagnostics import Diagnostic

# Any kind and any place are read, so that a misspelt comment is never met by what is reported.
_COMMENT = re.compile(r"//.*?expected-(?P<kind>[\w-]+)(?:@(?P<where>[^\s{]*))?\s*\{\{(?P<words>.*?)\}\}")
_OFFSETS = {"": 0, "above": -1, "below": 1}
_NO_LINE = 0


@dataclass(frozen=True)
class Expected:
    """A comment, and the line that it speaks of; None for any."""

    kind: str
    line: int | None
    words: str
    written: int

    def matches(self, found: Diagnostic) -> bool:
        return self.kind == found.kind and self.line in (None, found.line) and self.words in found.message


def expected_in(text: str) -> Iterator[Expected]:
    for number, line in enumerate(text.splitlines(), 1):
        for match in _COMMENT.finditer(line):
            yield Expected(match["kind"], _line(match["where"] or "", number), match["words"], number)


def _line(where: str, number: int) -> int | None:
    """The line that `@where` in line `number` speaks of; None for any."""
    if where == "unknown":
        return None
    if where in _OFFSETS:
        return number + _OFFSETS[where]
    return number + int(where) if re.fullmatch(r"[+-]\d+", where) else _NO_LINE


def mismatches(text: str, name: str, found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """What was expected and not reported, and what was reported and not expected; empty if all is well."""
    left, wrong = list(found), list[Diagnostic]()
    # Those that speak of a line choose first.
    for expected in sorted(expected_in(text), key=lambda one: one.line is None):
        match = next((one for one in left if expected.matches(one)), None)
        if match is None:
            message = f"expected {expected.kind} was not reported: {expected.words}"
            wrong.append(Diagnostic("error", name, expected.written, 1, message))
        else:
            left.remove(match)
    unexpected = [Diagnostic("error", d.file, d.line, d.column, f"unexpected {d.kind}: {d.message}") for d in left]
    return [*wrong, *unexpected]
