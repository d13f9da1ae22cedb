"""All scripts of the corpus."""

from __future__ import annotations

from . import autograd, control, mixed, modules, structures, training
from .script import SCRIPTS, Script

MODULES = (modules, control, autograd, training, mixed, structures)


def scripts() -> dict[str, Script]:
    return SCRIPTS
