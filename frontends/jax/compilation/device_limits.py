"""The bytes that a budget allows on the device of a compiled step."""

from __future__ import annotations

from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ....search.limits import temporaries_limit
from ....support.units import is_share, parse_budget
from ..internals.device_memory import reported_free_bytes
from ..keywords.budget_option import DEVICE
from .allocation import UnknownMemory, fixed_bytes, reported_bytes

_JAX: Any = jax
"""Typed as `Any`, because the types of JAX are incomplete."""


def device_limit(module: ModuleOp, budget: str, plain: jax.stages.Compiled) -> int | None:
    """Return the bytes of the device that a budget allows, including arguments and results; None for the budget `min`.

    The parameters are the same as for `limit_of_step`. Raises `UnknownMemory` if the compiler or the device reports no
    sizes.
    """
    plain_bytes = reported_bytes(module, plain, "a budget")
    if budget == DEVICE:
        return max(1, free_bytes(module))
    limit = parse_budget(budget, plain_bytes)
    return limit + fixed_bytes(plain) if limit is not None and is_share(budget) else limit


def limit_of_step(module: ModuleOp, budget: str, plain: jax.stages.Compiled) -> int | None:
    """Return the bytes that a budget leaves for temporaries; None for the budget `min`.

    Args:
        module: The step, for the position of an error.
        budget: The budget, as `checked_budget` returns it.
        plain: The compiled plain step.

    Raises:
        UnknownMemory: If the compiler or the device reports no sizes.
        Refusal: If arguments and results alone exceed the budget.
    """
    plain_bytes = reported_bytes(module, plain, "a budget")
    text = f"{max(1, free_bytes(module))}B" if budget == DEVICE else budget
    return temporaries_limit(module, text, plain_bytes, fixed_bytes(plain))


def demand_device_memory(module: ModuleOp, budget: str | None) -> None:
    """Raise `UnknownMemory` for the budget `device` if the device does not report its memory, before anything is
    compiled."""
    if budget == DEVICE:
        free_bytes(module)


def free_bytes(module: ModuleOp) -> int:
    """Return the number of bytes that the device reports as free. Raises `UnknownMemory` if it reports none."""
    if (count := reported_free_bytes()) is None:
        device: Any = _JAX.local_devices()[0]
        raise UnknownMemory(
            module, f'budget="device": {device.platform} does not report its memory: give bytes or a share'
        )
    return count
