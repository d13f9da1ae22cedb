"""All scripts of the corpus."""

from __future__ import annotations

from . import autograd, control, modules, training
from .script import SCRIPTS, Script

MODULES = (modules, control, autograd, training)


def scripts() -> dict[str, Script]:
    return SCRIPTS
