"""Compiler options that keep the optimization barriers of rewritten steps, and options for measuring a step."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

DROPS_BARRIERS = "cse_barrier_expander"
"""The pass of XLA:CPU that removes barriers before scheduling. Up to jax 0.10, CSE then merges the copies."""
NO_LONGER_MERGES = (0, 11)
"""The first version of JAX in which XLA:CPU removes barriers only after its last CSE.

From this version on, rewritten steps need no more bytes without barriers than with them. Some need far fewer, because
XLA fuses across the positions of removed barriers.
"""
DISABLED = "xla_disable_hlo_passes"
MEASURING: Mapping[str, Any] = {"xla_backend_optimization_level": 0}
"""Options with which XLA:CPU compiles in less time, and reports the same temporaries and FLOPs as without them
(`benchmarks/compile_time/level_zero.py`)."""
_FLAG = re.compile(rf"--{DISABLED}=[\"']?([^\s\"']+)")


def merges_copies(platforms: Sequence[str]) -> bool:
    """Return whether XLA, by default, removes barriers and then merges copies with their originals."""
    return "cpu" in platforms and jax.__version_info__ < NO_LONGER_MERGES


def keeping_barriers(platforms: Sequence[str], *option_sets: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Merge compiler options, and add the option that keeps barriers if XLA would otherwise merge the copies.

    The option `xla_disable_hlo_passes` overrides the lists of disabled passes in `XLA_FLAGS` and JAX's configuration,
    so the result repeats these passes.

    Args:
        platforms: The platforms for which the step is compiled.
        option_sets: Compiler options; later ones override earlier ones.

    Returns:
        The options; None if there are none.
    """
    merged = {name: value for options in option_sets for name, value in (options or {}).items()}
    if not merges_copies(platforms):
        return merged or None
    disabled = [*_disabled_by_flags(), *_disabled_by_configuration()]
    for options in option_sets:
        disabled += str((options or {}).get(DISABLED, "")).split(",")
    return {**merged, DISABLED: ",".join(dict.fromkeys([*filter(None, disabled), DROPS_BARRIERS]))}


def are_kept_by_flags() -> bool:
    """Return whether `XLA_FLAGS` already keeps barriers on CPU."""
    return DROPS_BARRIERS in _disabled_by_flags()


def _disabled_by_flags() -> list[str]:
    """Return the passes that `XLA_FLAGS` disables. The variable holds flags, or the name of a file with flags."""
    flags = os.environ.get("XLA_FLAGS", "")
    if flags and not flags.lstrip().startswith("-"):
        flags = Path(flags).read_text() if Path(flags).is_file() else ""
    return [name for names in _FLAG.findall(flags) for name in names.split(",")]


def _disabled_by_configuration() -> list[str]:
    config: Any = jax.config
    return [] if config.jax_compiler_enable_remat_pass else ["rematerialization"]
