"""MLIR passes in xDSL that trade computation for memory in training.

Start with docs/tutorial_jax.md, docs/tutorial_torch.md or docs/tutorial_mlir.md; docs/embedding.md shows how to use
this Python API. The pages are installed with the package: `python -m recompute docs` prints their directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .frontends.import_hook import FRONTENDS, install_finder
from .support.lazy_names import lazy_names

__version__ = "0.2.0"

if TYPE_CHECKING:
    from .driver.api import context as context
    from .driver.api import explain as explain
    from .driver.api import memory as memory
    from .driver.api import prove as prove
    from .driver.api import rewrite as rewrite
    from .driver.budgets.fit import Fit as Fit
    from .driver.budgets.fit import fit as fit
    from .driver.rewrites.rewritten import Rewritten as Rewritten
    from .driver.verification.verified import NotProved as NotProved
    from .frontends import jax as jax
    from .frontends import torch as torch
    from .frontends.jax import eqx as eqx
    from .frontends.jax import nnx as nnx
    from .options.recompute_options import RecomputeOptions as RecomputeOptions
    from .options.selection import Selection as Selection
    from .planning.graph import Graph as Graph
    from .planning.pairs import plan_of_pairs as plan_of_pairs
    from .planning.plan import Plan as Plan
    from .support.config import config as config
    from .support.diagnostics import Refusal as Refusal

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


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "driver.api": "context explain memory prove rewrite",
        "driver.budgets.fit": "Fit fit",
        "driver.rewrites.rewritten": "Rewritten",
        "driver.verification.verified": "NotProved",
        "options.recompute_options": "RecomputeOptions",
        "options.selection": "Selection",
        "planning.graph": "Graph",
        "planning.pairs": "plan_of_pairs",
        "planning.plan": "Plan",
        "support.config": "config",
        "support.diagnostics": "Refusal",
    },
    modules=FRONTENDS,  # Not in `__all__`: `from recompute import *` must not need JAX.
)
install_finder()
