"""Flax Transformer with its layers under `nn.scan` (and `nn.remat` for comparison), trained with AdamW."""

# pyright: basic

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from ..models.step import Step, shape

# layers, batch, length, width, heads, vocabulary
SIZES = {"small": (3, 2, 16, 16, 2, 32), "large": (8, 8, 128, 128, 8, 256)}


class Layer(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x: Any, _: Any) -> tuple[Any, None]:
        x = x + nn.SelfAttention(self.heads)(nn.LayerNorm()(x))
        return x + nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x)))), None


class Transformer(nn.Module):
    layers: int
    width: int
    heads: int
    vocabulary: int
    checkpoint: bool

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        kind = nn.remat(Layer, prevent_cse=False) if self.checkpoint else Layer
        stack = nn.scan(kind, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.layers)
        x, _ = stack(self.heads)(nn.Embed(self.vocabulary, self.width)(tokens), None)
        return nn.Dense(self.vocabulary)(nn.LayerNorm()(x))


def build(size: str, checkpoint: bool = False) -> Step:
    layers, batch, length, width, heads, vocabulary = SIZES[size]
    model, rule = Transformer(layers, width, heads, vocabulary, checkpoint), optax.adamw(1e-3)

    def step(weights: Any, state: Any, tokens: Any) -> Any:
        def loss(weights: Any) -> Any:
            logits = model.apply(weights, tokens[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

        value, gradient = jax.value_and_grad(loss)(weights)
        change, state = rule.update(gradient, state, weights)
        return value, optax.apply_updates(weights, change), state

    tokens = shape(batch, length + 1, dtype=jnp.int32)
    weights = jax.eval_shape(lambda: model.init(jax.random.key(0), jnp.zeros((batch, length), jnp.int32)))
    return Step(step, (weights, jax.eval_shape(rule.init, weights), tokens), donated=(0, 1))
