"""The memory of a compiled step, as the compiler reports it."""

from __future__ import annotations

from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ....support.diagnostics import Refusal

_JAX: Any = jax
"""Typed as `Any`, because the types of JAX are incomplete."""


class UnknownMemory(Refusal):
    """Refusal because the compiler or the device does not report memory sizes."""


def device_count(compiled: jax.stages.Compiled) -> int:
    """Return the number of devices on which a compiled step runs. The compiler reports the bytes of a single device."""
    step: Any = compiled
    shardings: Any = _JAX.tree.leaves((step.input_shardings, step.output_shardings))
    return max((len(sharding.device_set) for sharding in shardings), default=1)


def temporary_bytes(compiled: jax.stages.Compiled) -> int | None:
    """Return the bytes of temporaries, or None if the compiler reports none."""
    analysis: Any = compiled.memory_analysis()
    return None if analysis is None else int(analysis.temp_size_in_bytes)


def reported_bytes(module: ModuleOp, compiled: jax.stages.Compiled, option: str) -> int:
    """Return the bytes of temporaries of a compiled step, for an option that needs them.

    Args:
        module: The step, for the position of an error.
        compiled: The compiled step.
        option: The name of the option, for the error.

    Raises:
        UnknownMemory: If the compiler reports no sizes.
    """
    if (size := temporary_bytes(compiled)) is None:
        raise UnknownMemory(
            module, f"{option} needs a compiler that reports memory sizes, but this compiler reports none"
        )
    return size


def fixed_bytes(compiled: jax.stages.Compiled) -> int:
    """Return the bytes of arguments and results, which no plan changes. The compiler must report sizes."""
    analysis: Any = compiled.memory_analysis()
    return int(analysis.argument_size_in_bytes + analysis.output_size_in_bytes - analysis.alias_size_in_bytes)
