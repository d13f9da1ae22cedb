"""Settings of XLA that several benchmarks use.

This module does not import JAX, because JAX reads the flags when it is imported.
"""

from __future__ import annotations

import os

KEEP_BARRIERS: dict[str, str | bool] = {"xla_disable_hlo_passes": "cse_barrier_expander"}
"""The compiler options that make XLA:CPU keep barriers. By default, it removes them before it schedules, and then
merges copies with their originals, including the copies of `jax.checkpoint`."""
_HOST_DEVICES = "--xla_force_host_platform_device_count"


def flags_with_host_devices(count: int) -> str:
    """Return the value of `XLA_FLAGS`, with a flag for `count` host devices added unless the value already sets their
    number."""
    flags = os.environ.get("XLA_FLAGS", "")
    return flags if _HOST_DEVICES in flags else f"{flags} {_HOST_DEVICES}={count}".strip()
