"""A GPT with dropout, written with Flax Linen. One step returns gradients, and another is an AdamW step with
donation."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

from recompute.benchmarks.peers.peer import Built, Remat, policy_of, texts
from recompute.benchmarks.peers.plain_gpt import Size, size_of


class LinenBlock(nn.Module):
    """A Transformer block: causal attention and MLP, each after a normalization."""

    heads: int

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        mask = nn.make_causal_mask(x[..., 0])
        attend = nn.MultiHeadDotProductAttention(self.heads, dropout_rate=0.1, deterministic=not train)
        x = x + attend(nn.LayerNorm()(x), mask=mask)
        hidden = nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x)))
        return x + nn.Dropout(0.1, deterministic=not train)(nn.Dense(x.shape[-1])(hidden))


class LinenGPT(nn.Module):
    """A decoder-only Transformer over tokens of shape (rows, length)."""

    size: Size
    remat: Remat

    @nn.compact
    def __call__(self, tokens: jax.Array, train: bool = True) -> jax.Array:
        x = nn.Embed(self.size.words, self.size.width)(tokens)
        x = x + nn.Embed(self.size.length, self.size.width)(jnp.arange(self.size.length))
        layer = LinenBlock
        if self.remat:
            layer = nn.remat(LinenBlock, static_argnums=(2,), policy=policy_of(self.remat))
        for number in range(self.size.layers):
            # The name is the same with and without remat, so that both draw the same random numbers.
            x = layer(self.size.heads, name=f"Block_{number}")(x, train)
        return nn.Dense(self.size.words)(nn.LayerNorm()(x))


def loss_of(model: LinenGPT) -> Any:
    """Return the function `loss(parameters, tokens, following, key)`."""

    def loss(parameters: Any, tokens: jax.Array, following: jax.Array, key: jax.Array) -> jax.Array:
        logits: Any = model.apply({"params": parameters}, tokens, rngs={"dropout": key})
        return optax.softmax_cross_entropy_with_integer_labels(logits, following).mean()

    return loss


def build(remat: Remat, size: str) -> Built:
    """Build the step that returns the loss and its gradients."""
    shape = size_of(size)
    model = LinenGPT(shape, remat)
    step = jax.value_and_grad(loss_of(model))
    return Built(step, lambda seed: (_parameters(model, seed), *_batch(shape, seed)))


def build_adamw(remat: Remat, size: str) -> Built:
    """Build the step that updates a donated state with AdamW."""
    shape = size_of(size)
    model, optimizer = LinenGPT(shape, remat), optax.adamw(1e-3)

    def step(state: TrainState, *batch: jax.Array) -> Any:
        loss, gradient = jax.value_and_grad(loss_of(model))(state.params, *batch)
        return state.apply_gradients(grads=gradient), loss

    def arguments(seed: int) -> tuple[Any, ...]:
        state = TrainState.create(apply_fn=model.apply, params=_parameters(model, seed), tx=optimizer)
        return state, *_batch(shape, seed)

    return Built(step, arguments, {"donate_argnums": 0})


def _parameters(model: LinenGPT, seed: int) -> Any:
    tokens = jnp.zeros((1, model.size.length), jnp.int32)
    return model.init(jax.random.key(seed), tokens, train=False)["params"]


def _batch(size: Size, seed: int) -> tuple[Any, ...]:
    return *texts(seed, size.rows, size.length, size.words), jax.random.key(seed + 1)
