"""Consecutive loops: paired only across the forward/backward boundary, with the memory that jax.checkpoint needs
(R17)."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingParameterType=false
from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import recompute
from recompute.analysis.step.jax_paths import path_of
from recompute.dialects.names import Names

pytestmark = pytest.mark.slow

KEPT: Any = {"xla_disable_hlo_passes": "cse_barrier_expander"}
remat = partial(jax.checkpoint, prevent_cse=False)
same = lambda body: body  # noqa: E731


def layer(x, p, scale=0.5):
    return x + scale * jnp.tanh(jnp.sin(x @ p["u"]) @ p["d"])


def encoder_then_recurrence(p, X, wrap):
    """Apply `lax.map` to the inputs, then a recurrent scan to its results."""
    codes = lax.map(wrap(lambda x: jnp.tanh(jnp.sin(x @ p["u"]) @ p["d"])), X)
    h, means = lax.scan(wrap(lambda h, z: (jnp.tanh(h @ p["r"] + z), jnp.mean(h))), jnp.zeros_like(X[0]), codes)
    return jnp.mean(h**2) + jnp.mean(means)


def in_both_directions(p, X, wrap):
    """Read the stack of the first forward loop from its end in the second one."""
    body = lambda h, x: (jnp.tanh(h @ p["r"] + jnp.sin(x)),) * 2  # noqa: E731
    _, there = lax.scan(wrap(body), jnp.zeros_like(X[0]), X)
    _, back = lax.scan(wrap(body), jnp.zeros_like(X[0]), there, reverse=True)
    return jnp.mean(back**2)


def returns_of_a_rollout(p, X, wrap):
    """Compute returns in reverse, without a gradient, from a stack of rewards."""
    _, rewards = lax.scan(lambda s, x: (jnp.tanh(s + x), jnp.mean(s * x, -1)), jnp.zeros_like(X[0]), X)
    _, returns = lax.scan(lambda g, r: (r + 0.9 * g, r + 0.9 * g), jnp.zeros_like(rewards[0]), rewards, reverse=True)
    returns = lax.stop_gradient(returns)
    error = lambda x, g: jnp.mean((layer(x, p).mean(-1) - g) ** 2)  # noqa: E731
    return lax.scan(wrap(lambda c, xg: (c + error(xg[0], xg[1]), None)), 0.0, (X, returns))[0]


def reference_then_policy(p, X, wrap):
    """Read the values of a frozen model from a stack in the loop with the gradient."""
    reference = lax.stop_gradient(lax.map(lambda x: layer(x, p, 0.1), X))
    return lax.scan(wrap(lambda c, xr: (c + jnp.mean((layer(xr[0], p) - xr[1]) ** 2), None)), 0.0, (X, reference))[0]


STEPS = [encoder_then_recurrence, in_both_directions, returns_of_a_rollout, reference_then_policy]


def arguments() -> tuple[dict[str, jax.Array], jax.Array]:
    p = {"u": jnp.full((32, 128), 0.1), "d": jnp.full((128, 32), 0.1), "r": jnp.full((32, 32), 0.1)}
    return p, jnp.linspace(-1, 1, 8 * 64 * 32).reshape(8, 64, 32)


def needs(compiled: Any) -> tuple[int, float]:
    return compiled.memory_analysis().temp_size_in_bytes, compiled.cost_analysis()["flops"]


@pytest.mark.slow("returns_of_a_rollout")
@pytest.mark.parametrize("loss", STEPS, ids=lambda loss: loss.__name__)
def test_forward_loops_need_no_more_than_checkpoint(loss) -> None:
    given = arguments()
    plain = jax.jit(jax.value_and_grad(partial(loss, wrap=same))).lower(*given)
    theirs = jax.jit(jax.value_and_grad(partial(loss, wrap=remat))).lower(*given)
    ours = recompute.jax.jit(jax.value_and_grad(partial(loss, wrap=same))).lower(*given)
    size, flops = needs(ours.compile())
    their_size, their_flops = needs(theirs.compile(compiler_options=KEPT))
    assert size <= (1.05 if loss is in_both_directions else 1.02) * their_size < 0.8 * needs(plain.compile())[0]
    assert flops <= 1.1 * their_flops


def test_loops_without_gradient_are_unchanged() -> None:
    """Loops without a gradient are unchanged, and no copy has a backward location."""

    def measured(p, X):
        codes = lax.map(lambda x: jnp.tanh(jnp.sin(x @ p["u"]) @ p["d"]), X)
        return lax.scan(lambda h, z: (jnp.tanh(h @ p["r"] + z), None), jnp.zeros_like(X[0]), codes)[0]

    text = jax.jit(measured).lower(*arguments()).as_text(debug_info=True)
    result = recompute.rewrite(text, recompute.RecomputeOptions(pipeline="recompute-inline,recompute-loops"))
    assert not any(Names.COPY in op.attributes for op in result.module.walk())


def test_optimizer_loops_are_unchanged() -> None:
    """Loops over stacked weights after the gradient are unchanged, although they read each other's results."""

    def step(p, X):
        value, gradient = jax.value_and_grad(partial(reference_then_policy, wrap=same))(p, X)
        rows = jnp.reshape(gradient["u"], (8, -1))
        moments = lax.map(lambda g: 0.9 * jnp.sin(g) * jnp.cos(g), rows)
        return value, lax.map(lambda m: jnp.tanh(m) * 0.1, moments)

    result = recompute.rewrite(jax.jit(step).lower(*arguments()).as_text(debug_info=True))
    copied = [op for op in result.module.walk() if Names.COPY in op.attributes]
    assert copied and not any("jvp" not in path_of(op.location) for op in copied)
