"""Recurrent states save memory only if the cotangents that are added later pass through the token as well."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import recompute
from recompute.frontends.jax.compilation.compiler_options import DISABLED, DROPS_BARRIERS
from recompute.test.unit.frontends.jax.lowering.test_variant_choice import temporaries
from recompute.test.unit.frontends.jax.steps import block, jax, jnp

pytestmark = pytest.mark.slow

ROWS, WIDTH, BLOCKS, TIMES = 64, 64, 4, 2


def gru(w: Any, h: Any, x: Any) -> Any:
    keep, reset = jax.nn.sigmoid(x @ w[0] + h @ w[1]), jax.nn.sigmoid(x @ w[2] + h @ w[3])
    return (1 - keep) * jnp.tanh(x @ w[4] + (reset * h) @ w[5]) + keep * h


def several(w: Any, h: Any, xs: Any) -> Any:
    for x in xs:
        h = gru(w, h, x)
    return h


def step(run: Any) -> Any:
    def loss(w: Any, xs: Any) -> Any:
        h = jnp.zeros((ROWS, WIDTH))
        for index in range(BLOCKS):
            with block(f"block{index}"):
                h = run(w, h, [xs[index * TIMES + time] for time in range(TIMES)])
        return (h**2).mean()

    return jax.value_and_grad(loss)


def arguments() -> tuple[Any, Any]:
    drawn = [jax.random.normal(jax.random.key(seed), (WIDTH, WIDTH)) / 8 for seed in range(6)]
    return tuple(drawn), jax.random.normal(jax.random.key(7), (BLOCKS * TIMES, ROWS, WIDTH))


def furthest(first: Any, other: Any) -> float:
    """Return the largest difference over all leaves, in units of eps times the largest magnitude of the leaf."""
    leaves = zip(map(np.asarray, jax.tree.leaves(first)), map(np.asarray, jax.tree.leaves(other)), strict=True)
    return max(float(np.abs(a - b).max() / (np.finfo(b.dtype).eps * np.abs(b).max())) for a, b in leaves)


@pytest.mark.slow
def test_recurrent_state_halves_checkpointed_memory():
    def of_jax(run: Any) -> Any:
        return jax.jit(step(run)).lower(*arguments()).compile({DISABLED: DROPS_BARRIERS})

    theirs = of_jax(jax.checkpoint(several))
    ours = recompute.jax.jit(step(several)).lower(*arguments()).compile()
    assert temporaries(ours) < 0.6 * temporaries(theirs)
    # XLA rounds otherwise where it fuses otherwise, as it does with theirs.
    plain = of_jax(several)(*arguments())
    assert furthest(ours(*arguments()), plain) <= max(2, 1.5 * furthest(theirs(*arguments()), plain))
