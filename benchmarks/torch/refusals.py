"""Recognize refused budgets among the errors of `recompute.torch`, and read the numbers that a refusal reports.

Dynamo wraps the exceptions of a backend, so that only their text remains.
"""

from __future__ import annotations

import re

_LOWEST_PEAKS = (
    r"the lowest peak of any plan is .*?(\d+) bytes",
    r"another budget needs (?:[\d.]+ .iB \()?(\d+) bytes",
    r"compiled steps? needs (?:[\d.]+ .iB \()?(\d+) bytes",
)
"""Patterns of the lowest peak that a refusal reports, in order of precedence."""
_LOWER_BOUND = r"(?:no plan|none) needs less than (?:[\d.]+ .iB \()?(\d+) bytes"


def is_refusal(error: object) -> bool:
    """Return whether an error, or its text, means that no plan meets the budget."""
    return "BudgetNotKept" in str(error)


def lowest_stated_peak(refusal: str) -> int:
    """Return the lowest peak that a refusal reports, in bytes, or 0 if it reports none."""
    matches = (re.search(pattern, refusal) for pattern in _LOWEST_PEAKS)
    return next((int(match[1]) for match in matches if match), 0)


def stated_lower_bound(refusal: str) -> int | None:
    """Return the proven lower bound on the peak of any plan, in bytes, as a refusal reports it; None if it reports
    none.
    """
    match = re.search(_LOWER_BOUND, refusal)
    return None if match is None else int(match[1])


def describe_error(error: Exception | None) -> str:
    """Return the type of an error and its first line, without the backend's name that Dynamo prepends."""
    return f"{type(error).__name__}: {first_line(str(error).partition(' raised:')[2].strip() or error)}"


def first_line(text: object) -> str:
    """Return the first line that is not blank, shortened to 300 characters."""
    return next((line for line in str(text).splitlines() if line.strip()), "")[:300]
