"""The check of the option `budget` of `recompute.jax`."""

from __future__ import annotations

from typing import Any

from ....driver.option_checks import demand_plausible_budget
from ....support.units import budget_text, parse_budget
from ..internals.device_memory import reported_free_bytes

DEVICE = "device"
"""The budget that is the memory that the device reports as free."""


def checked_budget(budget: Any, caller: str = "recompute.jax.jit") -> str:
    """Return the option `budget` as a string.

    Args:
        budget: The option as the user gave it.
        caller: The function that messages name.

    Raises:
        TypeError: For a value that is not a str, an int or a float.
        ValueError: For an invalid budget.
    """
    demand_plausible_budget(f"{caller}: budget", budget)
    try:
        text = budget_text(budget)
        if text.lower() == DEVICE:
            return DEVICE
        parse_budget(text, 1)
    except ValueError as error:
        reports = reported_free_bytes() is not None
        device = '; budget="device" is the free memory of the device' if reports else ""
        raise ValueError(f"{caller}: {error}{device}") from error
    return text
