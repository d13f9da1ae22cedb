"""A stack of LSTM layers written with Flax Linen, scanned or unrolled over time. Each layer is a block."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from recompute.benchmarks.peers.peer import SMALL, Built, Remat, policy_of, texts

WORDS = 128


class LstmLayer(nn.Module):
    """A residual LSTM layer over x of shape (rows, length, width).

    `unroll`: the number of time steps in each iteration of the scan.
    """

    width: int
    unroll: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        run: Any = nn.RNN(nn.OptimizedLSTMCell(self.width), unroll=self.unroll)
        return x + run(nn.LayerNorm()(x))


class LstmTagger(nn.Module):
    """A stack of LSTM layers that predicts a token at each position."""

    width: int
    layers: int
    unroll: int
    remat: Remat

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = nn.Embed(WORDS, self.width)(tokens)
        layer = nn.remat(LstmLayer, policy=policy_of(self.remat)) if self.remat else LstmLayer
        for number in range(self.layers):
            x = layer(self.width, self.unroll, name=f"Layer_{number}")(x)
        return nn.Dense(WORDS)(x)


def build(remat: Remat, size: str, unrolled: bool) -> Built:
    """Build the training step of the given size, scanned or unrolled over time, plain or with remat."""
    rows, length, width, layers = (4, 6, 16, 3) if size == SMALL else (64, 12 if unrolled else 64, 64, 4)
    model = LstmTagger(width, layers, length if unrolled else 1, remat)

    def loss(parameters: Any, tokens: jax.Array, following: jax.Array) -> jax.Array:
        logits: Any = model.apply({"params": parameters}, tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits, following).mean()

    def arguments(seed: int) -> tuple[Any, ...]:
        tokens = jnp.zeros((1, length), jnp.int32)
        return model.init(jax.random.key(seed), tokens)["params"], *texts(seed, rows, length, WORDS)

    return Built(jax.value_and_grad(loss), arguments)
