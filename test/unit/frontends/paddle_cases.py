"""Steps that call `recompute.jax.paddle.recompute`, or call a function as it is. Import this where JAX is there."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import recompute
from recompute.test.unit.frontends.steps import batch, far_apart, jax, jnp, tree, weights

paddle: Any = recompute.jax.paddle
Call = Callable[..., Any]


def plainly(function: Call, /, *args: Any, **kwargs: Any) -> Any:
    """As `paddle.recompute`, and nothing is said."""
    for name in ("preserve_rng_state", "use_reentrant", "offload_indices"):
        kwargs.pop(name, None)
    return function(*args, **kwargs)


def wave(w: Any, x: Any) -> Any:
    """One block, (rows, width) to the same, whose sine a backward pass reads."""
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
    """What is recomputed, lowered. `loss`: of what calls the blocks.

    Under `jax.jit` the call changes no bit; under `recompute.jax.jit` at least so many operations are run again, and
    the gradients stay as near as XLA rounds.
    """
    marked, plain = (jax.value_and_grad(loss(call)) for call in (paddle.recompute, plainly))
    expected = jax.jit(plain)(*arguments)
    assert same_bits(jax.jit(marked)(*arguments), expected)
    lowered = recompute.jax.jit(marked, measure=False).lower(*arguments)
    assert lowered.why is None and lowered.rewritten is not None and lowered.rewritten.copies >= least
    assert far_apart(lowered.compile()(*arguments), expected) == []
    return lowered


__all__ = ["batch", "check", "jax", "jnp", "loss_of", "paddle", "plainly", "same_bits", "sines", "wave", "weights"]
