"""Random numbers from a key that the step closes over are drawn again in the backward pass.

XLA folds no loop, and merges a copy that reads only constants with the original, whose result would then stay alive.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import recompute
from recompute.test.unit.frontends.jax.steps import far_apart, jax, jnp, temporaries

KEEPS = {"xla_disable_hlo_passes": "cse_barrier_expander"}
LAYERS, WIDTH, ROWS = 8, 32, 256


def residual(w: Any, x: Any, key: Any) -> Any:
    mask = jax.random.bernoulli(key, 0.9, x.shape)
    return x + jnp.where(mask, jnp.tanh(jnp.sin(x @ w[0])) @ w[1], 0)


def step_of(layer: Any) -> Any:
    key = jax.random.key(0)

    def loss(weights: Any, x: Any) -> Any:
        for index, w in enumerate(weights):
            with jax.named_scope(f"block{index}"):
                x = layer(w, x, jax.random.fold_in(key, index))
        return jnp.mean(x**2)

    return jax.value_and_grad(loss)


def arguments() -> tuple[Any, Any]:
    keys = jax.random.split(jax.random.key(1), LAYERS)
    weights = [
        (0.1 * jax.random.normal(key, (WIDTH, 4 * WIDTH)), 0.1 * jax.random.normal(key, (4 * WIDTH, WIDTH)))
        for key in keys
    ]
    return weights, jnp.ones((ROWS, WIDTH))


def test_dropout_from_a_constant_key_needs_at_most_the_memory_of_jax_checkpoint() -> None:
    step = recompute.jax.jit(step_of(residual))
    compiled = step.lower(*arguments()).compile()
    checkpointed = jax.jit(step_of(jax.checkpoint(residual))).lower(*arguments()).compile(KEEPS)
    assert temporaries(compiled) <= 1.05 * temporaries(checkpointed)
    plain = jax.jit(step_of(residual))
    assert not far_apart(step(*arguments()), plain(*arguments()))
