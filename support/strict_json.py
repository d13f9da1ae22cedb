"""A JSON parser that rejects ambiguous and non-standard input.

If a key occurs several times, Python's parser silently keeps the last value. It also accepts `NaN` and `Infinity`,
although they are not JSON, and reads `1e999` as infinity. This parser rejects such input, as well as deep nesting and
numbers with thousands of digits.

"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

EXACT = 2**53
"""The bound below which every whole number is exact as a double."""


class BadJson(ValueError):
    """Raised for text that is not JSON. `line` and `column` are counted from 1."""

    def __init__(self, reason: str, line: int = 1, column: int = 1):
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column


def parse_strictly(text: str) -> object:
    """Parse JSON, and reject ambiguous text.

    Raises:
        BadJson: `text` is not JSON, or is ambiguous.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except BadJson:
        raise
    except json.JSONDecodeError as error:
        raise BadJson(error.msg, error.lineno, error.colno) from error
    except RecursionError:
        raise BadJson("the text is nested too deeply") from None
    except ValueError as error:
        raise BadJson(str(error)) from error


def why_no_amount(value: object) -> str | None:
    """Return the reason that the value is not an integer from 0 to 2**53 - 1, or None if it is such an integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        return "is not a whole number"
    if value < 0:
        return "is negative"
    return "is 2**53 or more" if value >= EXACT else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise BadJson(f"the key '{repeated}' occurs twice")
    return data


def _constant(name: str) -> float:
    raise BadJson(f"{name} is not a JSON number")


def _float(text: str) -> float:
    if not isfinite(number := float(text)):
        raise BadJson(f"the number {text} is too large")
    return number
