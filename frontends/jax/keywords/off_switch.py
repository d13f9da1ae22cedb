"""Switch recomputation off inside `disabled()`, or by `RECOMPUTE=off` in the environment."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

SWITCH_VARIABLE = "RECOMPUTE"
OFF, ON = ("off", "0", "false"), ("", "on", "1", "true")
WHY = f"recomputation is switched off, by {SWITCH_VARIABLE}=off or recompute.jax.disabled()"
RAN_SWITCHED_OFF = f"calls under {SWITCH_VARIABLE}=off or recompute.jax.disabled() ran the plain step"
_is_disabled: ContextVar[bool] = ContextVar("whether recomputation is switched off", default=False)


@contextmanager
def disabled() -> Generator[None, None, None]:
    """Within the context, run steps as `jax.jit` does, without a rewrite. Steps that are already compiled stay cached.

    Example:
        >>> with recompute.jax.disabled():  # doctest: +SKIP
        ...     state, loss = step(state, batch)
    """
    token = _is_disabled.set(True)
    try:
        yield
    finally:
        _is_disabled.reset(token)


def is_disabled() -> bool:
    """Return whether recomputation is switched off. Raises `ValueError` for an unknown value of the environment
    variable."""
    value = os.environ.get(SWITCH_VARIABLE, "")
    if value and value.lower() not in (*OFF, *ON):
        raise ValueError(f"{SWITCH_VARIABLE}={value}: expected 'off' or 'on'")
    return _is_disabled.get() or value.lower() in OFF
