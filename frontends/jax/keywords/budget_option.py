"""The option `budget` of `recompute.jax`: its check, and the free memory of the device."""

from __future__ import annotations

from typing import Any

import jax

from ....support.units import budget_text, parse_budget

_JAX: Any = jax
"""Typed as `Any`, because the types of JAX are incomplete."""
DEVICE = "device"
"""The budget that stands for the memory that the device reports as free."""

LEAST_BYTES = 1024
"""The smallest integer that is accepted as a number of bytes. A smaller one was probably meant in another unit."""


def checked_budget(budget: Any, caller: str = "recompute.jax.jit") -> str:
    """Return the option `budget` as a string.

    Args:
        budget: The option as the user gave it.
        caller: The function that messages name.

    Raises:
        TypeError: For a value that is not a str, an int or a float.
        ValueError: For an invalid budget.
    """
    if isinstance(budget, bool) or not isinstance(budget, str | int | float):
        raise TypeError(f"{caller}: budget must be a str, a share (float) or bytes (int), not {type(budget).__name__}")
    if isinstance(budget, int) and 0 < budget < LEAST_BYTES:
        raise ValueError(
            f"{caller}: budget={budget} is a number of bytes; did you mean '{budget}GiB'? (for bytes: '{budget}B')"
        )
    try:
        text = budget_text(budget)
        if text.lower() == DEVICE:
            return DEVICE
        parse_budget(text, 1)
    except ValueError as error:
        reports = reported_free_bytes() is not None
        device = '; budget="device" stands for the free memory of the device' if reports else ""
        raise ValueError(f"{caller}: {error}{device}") from error
    return text


def reported_free_bytes() -> int | None:
    """Return the number of bytes that the first local device reports as free; None if it does not report its
    memory."""
    try:
        stats: Any = _JAX.local_devices()[0].memory_stats()
    except RuntimeError:  # No device can be used.
        return None
    if not stats or "bytes_limit" not in stats:
        return None
    return int(stats["bytes_limit"]) - int(stats.get("bytes_in_use", 0))
