"""`recompute.jax.paddle`: PaddlePaddle's recomputation API, under its own names, for JAX.

    hidden = paddle.recompute(block, x)                                  # fleet.utils.recompute
    y = paddle.recompute_sequential({"segments": 2}, blocks, x)          # incubate.distributed.fleet
    optimizer = paddle.RecomputeOptimizer(optax.adam(0.01))              # incubate.optimizer

These calls take effect under `recompute.jax.jit`; under `jax.jit` nothing is recomputed.
"""

from __future__ import annotations

from .functions import recompute, recompute_sequential
from .optimizer import RecomputeOptimizer
from .optimizer_program import Program

__all__ = ["Program", "RecomputeOptimizer", "recompute", "recompute_sequential"]
