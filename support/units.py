"""Parsing and formatting of byte counts and memory budgets, and the unit of times."""

from __future__ import annotations

import re
from math import floor, log10
from typing import Any

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
"""The units of printed byte counts: powers of 1024."""
PICOSECONDS = 1e12
"""Picoseconds per second. Cost models and plans give times as whole picoseconds."""
MINIMUM = "min"
"""The budget that requests the lowest possible peak."""
_PREFIXES = " KMGT"
_AMOUNT = re.compile(
    r"\s*(?P<number>\d+(?:\.\d*)?(?:e\d+)?|\.\d+)\s*(?P<unit>%|(?P<prefix>[kmgt]?)(?P<binary>i?)b?)\s*", re.IGNORECASE
)
_EXPECTED = "expected bytes ('8GiB', '500MB'), a share ('50%' or 0.5) or 'min'"
_SHARE = "a share of the peak of the original step"
_NOT_POSITIVE = "a budget must be positive"


def parse_bytes(text: str) -> int:
    """Parse a number of bytes: `1000000`; `8GiB` and `8Gi` (powers of 1024); `500MB` and `500M` (powers of 1000).

    Case is ignored, except that a `b` after a capital letter means bits: `8Gb` and `8Gib` are errors.

    Raises:
        ValueError: `text` is not a number of bytes, is a share, is in bits, or is less than one byte.
    """
    amount = _AMOUNT.fullmatch(text)
    if amount is None or amount["unit"] == "%" or (amount["binary"] and not amount["prefix"]):
        raise ValueError(f"invalid number of bytes '{text}': expected a number with or without a unit, such as '8GiB'")
    if amount["prefix"].isupper() and amount["unit"].endswith("b"):
        in_bytes = f"{amount['number']}{amount['prefix']}{amount['binary'].lower()}B"
        raise ValueError(f"invalid number of bytes '{text}': a 'b' means bits; did you mean '{in_bytes}'?")
    number = float(amount["number"])
    if number == float("inf"):
        raise ValueError(f"invalid number of bytes '{text}': the number is too large")
    base = 1024 if amount["binary"] else 1000
    count = int(number * base ** _PREFIXES.index(amount["prefix"].upper() or " "))
    if count <= 0:
        raise ValueError(f"invalid number of bytes '{text}': it is less than one byte")
    return count


def parse_budget(text: str, plain_peak: int) -> int | None:
    """Parse a memory budget.

    Args:
        text: `min`, a share such as `0.3` or `30%`, or bytes with a unit such as `8GiB`. A number without a unit is a
            share if it is at most 1, and an error if it is larger.
        plain_peak: The peak of the unchanged step in bytes, to which a share refers.

    Returns:
        The budget in bytes; None for `min`.

    Raises:
        ValueError: `text` is not a budget.
    """
    return None if text.strip().lower() == MINIMUM else amount_bytes(parse_amount(text), plain_peak)


def amount_bytes(amount: int | float, whole: int) -> int:
    """Return the bytes of an amount: an `int` is a number of bytes, and a `float` is a share of `whole` bytes."""
    return max(1, int(amount * whole)) if isinstance(amount, float) else amount


def parse_amount(text: str) -> int | float:
    """Parse a budget other than `min`. Returns bytes as an `int`, or a share above 0 and at most 1 as a `float`.

    Raises:
        ValueError: `text` is not such a budget.
    """
    amount = _AMOUNT.fullmatch(text)
    if amount is None:
        is_negative = text.strip().startswith("-") and _AMOUNT.fullmatch(text.strip()[1:])
        raise ValueError(f"invalid budget '{text}': {_NOT_POSITIVE if is_negative else _EXPECTED}")
    number = float(amount["number"])
    if is_share(text):
        share = number / 100 if amount["unit"] == "%" else number
        if not 0 < share <= 1:
            raise ValueError(f"invalid budget '{text}': {_SHARE} must be above 0 and at most 1")
        return share
    if amount["unit"] == "" and number != float("inf"):
        raise ValueError(f"invalid budget '{text}': {_without_unit(text.strip(), number)}")
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise ValueError(f"invalid budget '{text}': {str(error).partition(': ')[2]}") from error


def _without_unit(text: str, number: float) -> str:
    """Return the error message for a number above 1 without a unit: users who omit the unit more often mean percent or
    gigabytes than bytes."""
    if number != int(number):
        return f"{_SHARE} must be at most 1, and bytes must be whole numbers"
    share = f"'{text}%', " if number <= 100 else ""
    return f"'{text}' has no unit: write {share}'{text}MiB', '{text}GiB', or '{text}B' for bytes"


def is_share(text: str) -> bool:
    """Return whether `text` is a budget relative to the peak of the unchanged step."""
    amount = _AMOUNT.fullmatch(text)
    return amount is not None and (amount["unit"] == "%" or (amount["unit"] == "" and float(amount["number"]) <= 1))


def python_number(value: Any) -> Any:
    """Return a scalar of numpy or JAX as a Python number. Other values are returned unchanged."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


def budget_text(budget: str | float) -> str:
    """Convert a budget of the Python API to a string for `parse_budget`: whole numbers are bytes, other numbers are
    shares.

    Raises:
        ValueError: The number is not a budget.
    """
    budget = python_number(budget)
    if isinstance(budget, int) and budget < 1:
        raise ValueError(f"invalid budget {budget}: {_NOT_POSITIVE}")
    if isinstance(budget, float) and not 0 < budget <= 1:
        raise ValueError(
            f"invalid budget {budget}: {_SHARE} must be above 0 and at most 1, and bytes must be whole numbers"
        )
    return f"{budget}B" if isinstance(budget, int) else str(budget).strip()


def format_bytes(count: int) -> str:
    """Format `count` bytes in binary units with one decimal: 0 B, 1023 B, 1.5 KiB, 849.3 MiB, -2.0 GiB.

    Use integer arithmetic and round halves away from zero, so that the text is exact for counts of any size.
    """
    size, power = abs(count), 0
    while power + 1 < len(UNITS) and _tenths(size, power) >= 10 * 1024:
        power += 1
    digits = str(size) if power == 0 else "{}.{}".format(*divmod(_tenths(size, power), 10))
    return f"{'-' if count < 0 else ''}{digits} {UNITS[power]}"


def readable_bytes(count: int) -> str:
    """Format `count` bytes in binary units, followed by the exact number: 2.0 MiB (2130792 bytes)."""
    exact = f"{count} bytes"
    return exact if abs(count) < 1024 else f"{format_bytes(count)} ({exact})"


def format_percent(percent: float) -> str:
    """Format a percentage without the percent sign: 26.0, 0.15, 1234. The result has at most three significant digits
    below 1000.

    Trailing zeros after the first decimal are dropped.
    """
    if percent == 0:
        return "0"
    decimals = min(max(2 - floor(log10(abs(percent))), 0), 4)
    whole, _, fraction = f"{percent:.{decimals}f}".partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}" if fraction else whole


def _tenths(size: int, power: int) -> int:
    """Return `size` bytes in tenths of 1024 ** `power` bytes, rounded half up."""
    unit = 1024**power
    return (20 * size + unit) // (2 * unit)


def unit_for(count: int) -> tuple[int, str]:
    """Return the size in bytes and the name of the largest binary unit that does not exceed `count` bytes, for the axis
    of a chart."""
    power = min(max(count.bit_length() - 1, 0) // 10, len(UNITS) - 1)
    return 1024**power, UNITS[power]
