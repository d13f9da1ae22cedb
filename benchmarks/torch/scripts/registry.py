"""Registry of all scripts of the corpus."""

from __future__ import annotations

from . import autograd, compositions, control, mixed, modules, processes, recipes, representations, structures, training
from .script import SCRIPTS, Script

MODULES = (modules, control, autograd, training, mixed, structures, representations, recipes, compositions, processes)


def scripts() -> dict[str, Script]:
    """Return all scripts, by name."""
    return SCRIPTS
