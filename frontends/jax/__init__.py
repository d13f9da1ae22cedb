"""`recompute.jax`: `jax.jit` for training steps, in less memory.

    step = recompute.jax.jit(train_step, donate_argnums=0)  # in place of jax.jit
    state, loss = step(state, batch)
    print(step.report(state, batch))

docs/jax.md describes options, warnings and limits.
"""

from __future__ import annotations

from . import mindspore, paddle
from .disabled import disabled
from .explain_step import explain
from .jit import Jitted, jit
from .lowered import Lowered
from .marks import again, offload, save
from .private import UnsupportedJax
from .report import Report
from .scopes import block, named
from .warning import BarriersDropped, NothingSaved

__all__ = [
    "BarriersDropped",
    "Jitted",
    "Lowered",
    "NothingSaved",
    "Report",
    "UnsupportedJax",
    "again",
    "block",
    "disabled",
    "explain",
    "jit",
    "mindspore",
    "named",
    "offload",
    "paddle",
    "save",
]
