"""What a budget says: bytes with a unit, a share of the plain peak, or as little as can be."""

from __future__ import annotations

import re

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12} | {
    f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)
}
LEAST = "min"
_AMOUNT = re.compile(r"\s*(?P<number>\d+(?:\.\d*)?(?:e\d+)?|\.\d+)\s*(?P<unit>%|[a-z]*)\s*", re.IGNORECASE)


def budget_bytes(text: str, plain_peak: int) -> int | None:
    """`0.3` or `30%` of the plain peak, `8GiB`, `500MB`, `1000000`; None for `min`. Numbers without a unit and up to 1
    are shares. Raises `ValueError`, in words, for what is none of these."""
    if text.strip().lower() == LEAST:
        return None
    match = _AMOUNT.fullmatch(text)
    unit = match["unit"].lower() if match else ""
    if match is None or (unit != "%" and unit not in UNITS):
        known = "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
        raise ValueError(f"'{text}' is no budget: a share such as 0.3 or 30%, bytes with a unit ({known}), or min")
    number = float(match["number"])
    if number == float("inf"):
        raise ValueError(f"'{text}' is no budget: the number is too large")
    if unit == "%" or (unit == "" and number <= 1):
        share = number / 100 if unit == "%" else number
        if not 0 < share <= 1:
            raise ValueError(f"'{text}' is no budget: a share of the plain peak is above 0 and at most 1")
        return max(1, int(share * plain_peak))
    if unit == "" and number != int(number):
        raise ValueError(f"'{text}' is no budget: a share is at most 1, and bytes are whole")
    found = int(number * UNITS[unit])
    if found <= 0:
        raise ValueError(f"'{text}' is no budget: it has to be above 0 bytes")
    return found


def is_share(text: str) -> bool:
    """Whether what is a budget is a share of the plain peak."""
    match = _AMOUNT.fullmatch(text)
    return match is not None and (match["unit"] == "%" or (match["unit"] == "" and float(match["number"]) <= 1))


def in_words(count: float) -> str:
    """Bytes for readers: `2.07 GiB`."""
    for unit, size in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count:.0f} B"
