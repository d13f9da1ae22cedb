"""Steps that call `recompute.jax.paddle.recompute`, or the function directly. Import this only if JAX is installed."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import recompute
from recompute.test.unit.frontends.jax.steps import batch, far_apart, jax, jnp, tree, weights

paddle: Any = recompute.jax.paddle
Call = Callable[..., Any]


def plainly(function: Call, /, *args: Any, **kwargs: Any) -> Any:
    """Call the function directly, ignoring the options of `paddle.recompute`."""
    for name in ("preserve_rng_state", "use_reentrant", "offload_indices"):
        kwargs.pop(name, None)
    return function(*args, **kwargs)


def wave(w: Any, x: Any) -> Any:
    """Apply one block, (rows, width) to the same shape, whose sine the backward pass reads."""
    return x + jnp.tanh(jnp.sin(x @ w["up"]) * 2) @ w["down"]


def loss_of(call: Call, block: Call = wave, **switches: Any) -> Call:
    def loss(parameters: Any, x: Any) -> Any:
        for w in parameters:
            x = call(block, w, x, **switches)
        return jnp.mean(x**2)

    return loss


def sines(lowered: Any) -> int:
    return lowered.as_text().count("stablehlo.sine")


def same_bits(ours: Any, theirs: Any) -> bool:
    assert tree.structure(ours) == tree.structure(theirs)
    return all(bool((a == b).all()) for a, b in zip(tree.leaves(ours), tree.leaves(theirs), strict=True))


def check(loss: Callable[[Call], Call], *arguments: Any, least: int = 1) -> Any:
    """Check the recomputation of a loss, and return the lowered step. `loss` maps a call of a block to the loss.

    Under `jax.jit` the call changes no bit. Under `recompute.jax.jit` at least `least` operations are recomputed, and
    the gradients agree up to XLA's rounding.
    """
    marked, plain = (jax.value_and_grad(loss(call)) for call in (paddle.recompute, plainly))
    expected = jax.jit(plain)(*arguments)
    assert same_bits(jax.jit(marked)(*arguments), expected)
    lowered = recompute.jax.jit(marked, measure=False).lower(*arguments)
    assert lowered.why is None and lowered.rewritten is not None and lowered.rewritten.copies >= least
    assert far_apart(lowered.compile()(*arguments), expected) == []
    return lowered


__all__ = ["batch", "check", "jax", "jnp", "loss_of", "paddle", "plainly", "same_bits", "sines", "wave", "weights"]
