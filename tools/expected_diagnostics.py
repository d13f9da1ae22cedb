"""`// expected-error {{words}}`, `// expected-remark {{words}}`: comments in the input say what must be reported.

A comment speaks of its own line; `@+1`, `@-2` of a line further down or up, `@above` and `@below` of the neighbours,
and `@unknown` of any. The words must occur in the message. Everything expected must be reported and everything reported
expected, as `mlir-opt --verify-diagnostics` has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .diagnostics import Diagnostic

_COMMENT = re.compile(
    r"//.*?expected-(?P<kind>error|remark)(?:@(?P<where>[+-]\d+|above|below|unknown))?\s*\{\{(?P<words>.*?)\}\}"
)
_OFFSETS = {"above": -1, "below": 1}


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
            where = match["where"]
            about = None if where == "unknown" else number + _OFFSETS.get(where or "+0", 0) + _signed(where)
            yield Expected(match["kind"], about, match["words"], number)


def _signed(where: str | None) -> int:
    return int(where) if where and where[0] in "+-" else 0


def mismatches(text: str, name: str, found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """What was expected and not reported, and what was reported and not expected; empty if all is well."""
    left, wrong = list(found), list[Diagnostic]()
    for expected in expected_in(text):
        match = next((one for one in left if expected.matches(one)), None)
        if match is None:
            message = f"expected {expected.kind} was not reported: {expected.words}"
            wrong.append(Diagnostic("error", name, expected.written, 1, message))
        else:
            left.remove(match)
    unexpected = [Diagnostic("error", d.file, d.line, d.column, f"unexpected {d.kind}: {d.message}") for d in left]
    return [*wrong, *unexpected]
