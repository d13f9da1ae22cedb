"""A step of five layers, and the same layers with `jax.checkpoint`, for tests of budgets."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from recompute.test.unit.frontends.jax.steps import batch, jax, mlp, weights

STEP = mlp().step


def five_layers() -> tuple[Any, Any]:
    return weights(5, 16, 64), batch(512, 16)


def checkpointed_blocks(parameters: Any, x: Any) -> Any:
    """Return a loss whose blocks are all recomputed by `jax.checkpoint`."""
    block = jax.checkpoint(lambda w, x: x + jax.nn.gelu(x @ w["up"]) @ w["down"])
    for w in parameters:
        x = block(w, x)
    return (x**2).mean()
