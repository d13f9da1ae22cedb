"""The registry of all scripts of the corpus."""

from __future__ import annotations

from recompute.benchmarks.torch.scripts import (
    autograd,
    compositions,
    control_in_models,
    mixed,
    modules,
    recipes,
    representations,
    structures,
    training,
    two_processes,
)
from recompute.benchmarks.torch.scripts.script import SCRIPTS, Script

MODULES = (
    modules,
    control_in_models,
    autograd,
    training,
    mixed,
    structures,
    representations,
    recipes,
    compositions,
    two_processes,
)


def scripts() -> dict[str, Script]:
    """Return all scripts, by name."""
    return SCRIPTS
