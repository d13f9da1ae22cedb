"""The memory of the first local device, as JAX reports it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

_JAX: Any = jax
"""Typed as `Any`, because the types of JAX are incomplete."""


def reported_total_bytes() -> int | None:
    """Return the bytes that the device offers to programs; None if it does not report its memory."""
    stats = _memory_stats()
    return None if stats is None else int(stats["bytes_limit"])


def reported_free_bytes() -> int | None:
    """Return the bytes that the device reports as free; None if it does not report its memory."""
    stats = _memory_stats()
    return None if stats is None else int(stats["bytes_limit"]) - int(stats.get("bytes_in_use", 0))


def _memory_stats() -> Mapping[str, Any] | None:
    """Return the statistics of the device, which include its limit; None if it does not report them."""
    try:
        stats: Any = _JAX.local_devices()[0].memory_stats()
    except RuntimeError:  # No device can be used.
        return None
    return stats if stats and "bytes_limit" in stats else None
