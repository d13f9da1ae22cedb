"""Check diagnostics against comments in the input: `// expected-error {{words}}`, `-warning`, `-remark`.

A comment applies to its own line. With `@+1` or `@-2`, it applies to the line at that offset; with `@above` or
`@below`, to an adjacent line; and with `@unknown`, to any line. The message must contain the text in braces. In `//
expected-error-re {{…}}`, the text between inner `{{` and `}}` is a regular expression. Every expected diagnostic must
be reported, and every reported diagnostic must be expected, as with `mlir-opt --verify-diagnostics`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .reporting import Diagnostic

# The pattern matches any kind and any position, so that a misspelt comment is an error: no diagnostic matches it.
_COMMENT = re.compile(
    r"//.*?expected-(?P<kind>\w[\w-]*?)(?P<pattern>-re)?(?:@(?P<where>[^\s{]*))?\s*"
    r"\{\{(?P<words>(?:(?!\{\{|\}\}).|\{\{.*?\}\})*)\}\}"
)
_INNER = re.compile(r"\{\{(.*?)\}\}")
_OFFSETS = {"": 0, "above": -1, "below": 1}
_NO_LINE = 0


@dataclass(frozen=True)
class Expected:
    """A diagnostic that a comment expects.

    Attributes:
        kind: "error", "warning" or "remark".
        line: The line of the diagnostic; None for any line.
        words: The expected text, as in the comment.
        comment_line: The line of the comment.
        pattern: The regular expression that must match a part of the message.
    """

    kind: str
    line: int | None
    words: str
    comment_line: int
    pattern: re.Pattern[str]

    def matches(self, diagnostic: Diagnostic) -> bool:
        if self.kind != diagnostic.kind or self.line not in (None, diagnostic.line):
            return False
        return self.pattern.search(diagnostic.message) is not None


def expectations_in(text: str) -> Iterator[Expected]:
    """Yield the diagnostics that the comments in a text expect."""
    for number, line in enumerate(text.splitlines(), 1):
        for match in _COMMENT.finditer(line):
            pattern = _pattern(match["words"], is_pattern=match["pattern"] is not None)
            yield Expected(match["kind"], _line(match["where"] or "", number), match["words"], number, pattern)


def _pattern(words: str, *, is_pattern: bool) -> re.Pattern[str]:
    """Compile the expected text to a regular expression. An invalid expression matches nothing."""
    pieces = _INNER.split(words) if is_pattern else [words]
    text = "".join(f"(?:{piece})" if index % 2 else re.escape(piece) for index, piece in enumerate(pieces))
    try:
        return re.compile(text)
    except re.error:
        return re.compile(r"(?!)")


def _line(where: str, number: int) -> int | None:
    """Return the line to which `@where` in a comment on line `number` refers; None for any line."""
    if where == "unknown":
        return None
    if where in _OFFSETS:
        return number + _OFFSETS[where]
    return number + int(where) if re.fullmatch(r"[+-]\d+", where) else _NO_LINE


def mismatches(
    text: str, name: str, reported: Sequence[Diagnostic], *, only_expected: bool = False
) -> list[Diagnostic]:
    """Return an error for each expected diagnostic that was not reported, and for each reported one that was not
    expected.

    Args:
        text: The input, with its comments.
        name: The name of the input.
        reported: The reported diagnostics.
        only_expected: Whether to ignore unexpected diagnostics.
    """
    unmatched, missing = list(reported), list[Diagnostic]()
    # Comments for a specific line are matched before comments for any line.
    for expected in sorted(expectations_in(text), key=lambda comment: comment.line is None):
        match = next((diagnostic for diagnostic in unmatched if expected.matches(diagnostic)), None)
        if match is None:
            message = f"expected {expected.kind} was not reported: {expected.words}"
            missing.append(Diagnostic("error", name, expected.comment_line, 1, message))
        else:
            unmatched.remove(match)
    unexpected = [Diagnostic("error", d.file, d.line, d.column, f"unexpected {d.kind}: {d.message}") for d in unmatched]
    return missing if only_expected else [*missing, *unexpected]
