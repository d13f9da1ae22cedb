"""The memory of a compiled step, as the compiler reports it."""

from __future__ import annotations

from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ...support.diagnostics import Refusal


def temporary_bytes(compiled: jax.stages.Compiled) -> int | None:
    """Return the bytes of temporaries, or None if the compiler reports none."""
    analysis: Any = compiled.memory_analysis()
    return None if analysis is None else int(analysis.temp_size_in_bytes)


def reported_bytes(module: ModuleOp, compiled: jax.stages.Compiled, option: str) -> int:
    """Return the bytes of temporaries for an option that needs them.

    Args:
        module: The step, for the place of an error.
        compiled: The compiled step.
        option: The name of the option, for the error.

    Raises:
        Refusal: If the compiler reports none.
    """
    if (size := temporary_bytes(compiled)) is None:
        raise Refusal(module, f"{option} needs a compiler that reports what it allocates, but this one does not")
    return size


def fixed_bytes(compiled: jax.stages.Compiled) -> int:
    """Return the bytes of arguments and results, which no plan changes. The compiler must report sizes."""
    analysis: Any = compiled.memory_analysis()
    return int(analysis.argument_size_in_bytes + analysis.output_size_in_bytes - analysis.alias_size_in_bytes)
