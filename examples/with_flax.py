"""Train a Flax Transformer with dropout, optax and donation. The only change is from `jax.jit` to `recompute.jax.jit`.

    python examples/with_flax.py

The script needs `pip install 'xdsl-recompute[jax,flax]'`. Flax names the blocks `Block_0`, `Block_1`, …
"""

# pyright: basic

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

import recompute

WIDTH, HEADS, LAYERS, LENGTH, VOCABULARY = 64, 4, 3, 128, 256


class Block(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        mask = nn.make_causal_mask(x[..., 0])
        attended = nn.SelfAttention(HEADS, dropout_rate=0.1, deterministic=False)(nn.LayerNorm()(x), mask)
        x = x + nn.Dropout(0.1, deterministic=False)(attended)
        hidden = nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x)))
        return x + nn.Dropout(0.1, deterministic=False)(nn.Dense(WIDTH)(hidden))


class Transformer(nn.Module):
    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        x = nn.Embed(VOCABULARY, WIDTH)(tokens) + self.param("positions", nn.initializers.normal(), (LENGTH, WIDTH))
        for _ in range(LAYERS):
            x = Block()(x)
        return nn.Dense(VOCABULARY)(nn.LayerNorm()(x))


def train_step(state: TrainState, tokens: Any, key: Any) -> tuple[TrainState, Any]:
    def loss(parameters: Any) -> Any:
        logits = state.apply_fn({"params": parameters}, tokens[:, :-1], rngs={"dropout": key})
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    value, gradient = jax.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=gradient), value


def start() -> tuple[TrainState, Any, Any]:
    key, tokens = jax.random.key(0), jax.random.randint(jax.random.key(1), (8, LENGTH + 1), 0, VOCABULARY)
    parameters = jax.jit(Transformer().init)({"params": key, "dropout": key}, tokens[:, :-1])["params"]
    return TrainState.create(apply_fn=Transformer().apply, params=parameters, tx=optax.adamw(1e-3)), tokens, key


def main() -> None:
    state, tokens, key = start()
    step = recompute.jax.jit(train_step, segments="Block_*", donate_argnums=0)  # was: jax.jit(train_step, donate_…)
    print(step.report(state, tokens, key))
    for number in range(3):
        state, value = step(state, tokens, jax.random.fold_in(key, number))
        print(f"step {number}: loss {float(value):.4f}")
    assert jnp.isfinite(value)


if __name__ == "__main__":
    main()
