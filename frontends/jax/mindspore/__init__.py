"""`recompute.jax.mindspore`: MindSpore's recomputation API, for functions and modules of JAX.

    ms = recompute.jax.mindspore                   # MindSpore is not needed

    y = ms.recompute(block, x)                     # mindspore.recompute

    cell = ms.Cell(block)                          # nn.Cell.recompute
    cell.recompute(mp_comm_recompute=False)
    y = cell(x)

    exp = ms.Primitive(jnp.exp).recompute(False)   # ops.Primitive.recompute

These calls take effect under `recompute.jax.jit`; `jax.jit` ignores them. docs/mindspore_calls.md compares them with
the calls of MindSpore.
"""

from __future__ import annotations

from .cell import Cell, Primitive, recompute

__all__ = ["Cell", "Primitive", "recompute"]
