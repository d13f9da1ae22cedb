"""Check diagnostics against comments in the input: `// expected-error {{words}}`, `-warning`, `-remark`, `-note`.

A comment applies to its own line. With `@+1` or `@-2`, it applies to the line at that offset; with `@above` or
`@below`, to an adjacent line; and with `@unknown`, to any line. Spaces before `@` are allowed: `expected-error @+1`.
The message must contain the text in braces. In `// expected-error-re {{…}}`, the text between inner `{{` and `}}` is a
regular expression. Every expected diagnostic must be reported, and every reported diagnostic must be expected, as with
`mlir-opt --verify-diagnostics`. A comment that cannot be parsed is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .reporting import Diagnostic

_EXPECTATION = re.compile(
    r"expected-(?P<kind>error|warning|remark|note)(?P<pattern>-re)? *(?:@(?P<where>[+-]\d+|above|below|unknown))? *"
    r"\{\{(?P<words>(?:(?!\{\{|\}\}).|\{\{.*?\}\})*)\}\}"
)
_UNREADABLE = re.compile(r"expected-(?:(?:error|warning|remark|note).*|\w[\w-]*(?: *@[^\s{]*)? *\{\{.*)")
_EXPECTED_FORM = "expected 'expected-KIND[-re] [@WHERE] {{TEXT}}' with " + (
    "the kind error, warning, remark or note, and the position +N, -N, above, below or unknown"
)
_INNER = re.compile(r"\{\{(.*?)\}\}")
_OFFSETS = {"above": -1, "below": 1}


@dataclass(frozen=True)
class Expected:
    """A diagnostic that a comment expects.

    Attributes:
        kind: "error", "warning", "remark" or "note".
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
    """Yield the diagnostics that the comments in a text expect. Comments that cannot be parsed are omitted."""
    for number, comment in _comments(text):
        for match in _EXPECTATION.finditer(comment):
            pattern = _pattern(match["words"], is_pattern=match["pattern"] is not None)
            yield Expected(match["kind"], _line(match["where"], number), match["words"], number, pattern)


def _unreadable_comments(text: str, name: str) -> Iterator[Diagnostic]:
    """Yield an error for each line with an expectation that cannot be parsed."""
    for number, comment in _comments(text):
        unreadable = _UNREADABLE.search(_EXPECTATION.sub("", comment))
        if unreadable is not None:
            message = f"cannot parse the comment '{unreadable[0].rstrip()}': {_EXPECTED_FORM}"
            yield Diagnostic("error", name, number, 1, message)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number of each line with a comment, and the comment."""
    for number, line in enumerate(text.splitlines(), 1):
        _, slashes, comment = line.partition("//")
        if slashes:
            yield number, comment


def _pattern(words: str, *, is_pattern: bool) -> re.Pattern[str]:
    """Compile the expected text to a regular expression. An invalid regular expression matches nothing."""
    pieces = _INNER.split(words) if is_pattern else [words]
    text = "".join(f"(?:{piece})" if index % 2 else re.escape(piece) for index, piece in enumerate(pieces))
    try:
        return re.compile(text)
    except re.error:
        return re.compile(r"(?!)")


def _line(where: str | None, number: int) -> int | None:
    """Return the line to which a comment on line `number` refers; None for any line.

    `where`: the position after `@`; None if there is none.
    """
    if where == "unknown":
        return None
    if where is None:
        return number
    return number + (_OFFSETS[where] if where in _OFFSETS else int(where))


def mismatches(
    text: str, name: str, reported: Sequence[Diagnostic], *, only_expected: bool = False
) -> list[Diagnostic]:
    """Return an error for each missing diagnostic, for each unexpected diagnostic, and for each comment that cannot be
    parsed.

    Args:
        text: The input, with its comments.
        name: The name of the input.
        reported: The reported diagnostics.
        only_expected: Whether to ignore unexpected diagnostics.
    """
    unmatched, missing = list(reported), list(_unreadable_comments(text, name))
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
