"""Byte counts for people."""

from __future__ import annotations

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def human_bytes(count: int) -> str:
    """`count` bytes in binary units with one decimal: 0 B, 1023 B, 1.5 KiB, 849.3 MiB, -2.0 GiB.

    Integer arithmetic, halves rounded away from zero, so that the text is exact at every size.
    """
    size, power = abs(count), 0
    while power + 1 < len(UNITS) and tenths(size, power) >= 10 * 1024:
        power += 1
    digits = str(size) if power == 0 else "{}.{}".format(*divmod(tenths(size, power), 10))
    return f"{'-' if count < 0 else ''}{digits} {UNITS[power]}"


def tenths(size: int, power: int) -> int:
    """`size` in tenths of the unit 1024 ** `power`, rounded half up."""
    unit = 1024**power
    return (20 * size + unit) // (2 * unit)
