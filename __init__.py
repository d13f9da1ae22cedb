"""Trade computation for memory in training, as MLIR passes in xDSL.

The Python API is in `driver/api.py`; docs/embedding.md shows it at work. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .frontends.modules import FRONTENDS, install

__version__ = "0.2.0"

if TYPE_CHECKING:
    from .driver.api import Rewritten as Rewritten
    from .driver.api import context as context
    from .driver.api import explain as explain
    from .driver.api import memory as memory
    from .driver.api import prove as prove
    from .driver.api import rewrite as rewrite
    from .driver.fit import Fit as Fit
    from .driver.fit import fit as fit
    from .driver.verified import NotProved as NotProved
    from .frontends import jax as jax
    from .frontends import torch as torch
    from .frontends.jax import nnx as nnx
    from .options.recompute_options import RecomputeOptions as RecomputeOptions
    from .options.selection import Selection as Selection
    from .planning.graph import Graph as Graph
    from .planning.pairs import plan_of_pairs as plan_of_pairs
    from .planning.plan import Plan as Plan
    from .support.config import config as config
    from .support.diagnostics import Refusal as Refusal

_PLACES = {
    **dict.fromkeys("Rewritten context explain memory prove rewrite".split(), "driver.api"),
    "Fit": "driver.fit",
    "fit": "driver.fit",
    "NotProved": "driver.verified",
    "RecomputeOptions": "options.recompute_options",
    "Selection": "options.selection",
    "Refusal": "support.diagnostics",
    "config": "support.config",
    "Graph": "planning.graph",
    "Plan": "planning.plan",
    "plan_of_pairs": "planning.pairs",
}
__all__ = [
    "Fit",
    "Graph",
    "NotProved",
    "Plan",
    "RecomputeOptions",
    "Refusal",
    "Rewritten",
    "Selection",
    "config",
    "context",
    "explain",
    "fit",
    "memory",
    "plan_of_pairs",
    "prove",
    "rewrite",
]


install()


def __getattr__(name: str) -> Any:
    if name in FRONTENDS:  # Not in `__all__`: `from recompute import *` must not need JAX.
        return import_module(f"{__name__}.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'recompute' has no attribute '{name}'")
    return getattr(import_module(f".{_PLACES[name]}", __package__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
