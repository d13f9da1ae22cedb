"""Compiler options that keep the barriers of a rewritten step, and whatever else was asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

DROPS_BARRIERS = "cse_barrier_expander"
"""On XLA:CPU this pass takes barriers out before operations are ordered, and the copies go with them."""
DISABLED = "xla_disable_hlo_passes"
_FLAG = re.compile(rf"--{DISABLED}=[\"']?([^\s\"']+)")


def keeping_barriers(platforms: Sequence[str], *asked: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The options in `asked`, the later before the earlier, as the compiler for these platforms is to get them.

    On CPU the option replaces what `XLA_FLAGS` and JAX's configuration turn off: it names that too.
    """
    together = {name: value for options in asked for name, value in (options or {}).items()}
    if "cpu" not in platforms:
        return together or None
    off = [*_off_by_flags(), *_off_by_configuration()]
    for options in asked:
        off += str((options or {}).get(DISABLED, "")).split(",")
    return {**together, DISABLED: ",".join(dict.fromkeys([*filter(None, off), DROPS_BARRIERS]))}


def are_kept_by_flags() -> bool:
    """Whether `XLA_FLAGS` alone keeps barriers on CPU."""
    return DROPS_BARRIERS in _off_by_flags()


def _off_by_flags() -> list[str]:
    """`XLA_FLAGS` holds flags, or the name of a file that does."""
    flags = os.environ.get("XLA_FLAGS", "")
    if flags and not flags.lstrip().startswith("-"):
        flags = Path(flags).read_text() if Path(flags).is_file() else ""
    return [name for listed in _FLAG.findall(flags) for name in listed.split(",")]


def _off_by_configuration() -> list[str]:
    config: Any = jax.config
    return [] if config.jax_compiler_enable_remat_pass else ["rematerialization"]
