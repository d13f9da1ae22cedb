"""A GPT written with Flax NNX, split into graph and state, and trained by gradient descent."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from recompute.benchmarks.peers.peer import Built, Remat, policy_of, texts
from recompute.benchmarks.peers.plain_gpt import Size, size_of


class NnxBlock(nnx.Module):
    """A Transformer block: causal attention and MLP, each after a normalization."""

    def __init__(self, size: Size, rngs: nnx.Rngs):
        self.norm1 = nnx.RMSNorm(size.width, rngs=rngs)
        self.attend = nnx.MultiHeadAttention(size.heads, size.width, decode=False, rngs=rngs)
        self.norm2 = nnx.RMSNorm(size.width, rngs=rngs)
        self.up = nnx.Linear(size.width, 4 * size.width, rngs=rngs)
        self.down = nnx.Linear(4 * size.width, size.width, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + self.attend(self.norm1(x), mask=nnx.make_causal_mask(x[..., 0]))
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class NnxGPT(nnx.Module):
    """A decoder-only Transformer over tokens of shape (rows, length)."""

    def __init__(self, size: Size, remat: Remat, rngs: nnx.Rngs):
        self.tokens = nnx.Embed(size.words, size.width, rngs=rngs)
        self.places = nnx.Embed(size.length, size.width, rngs=rngs)
        self.blocks = nnx.List([NnxBlock(size, rngs) for _ in range(size.layers)])
        self.norm = nnx.RMSNorm(size.width, rngs=rngs)
        self.remat = remat

    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = self.tokens(tokens) + self.places(jnp.arange(tokens.shape[1]))
        for block in self.blocks:
            run = nnx.remat(NnxBlock.__call__, policy=policy_of(self.remat)) if self.remat else NnxBlock.__call__
            x = run(block, x)
        return self.tokens.attend(self.norm(x))


def build(remat: Remat, size: str) -> Built:
    """Build the training step of the given size, plain or with remat."""
    shape = size_of(size)
    graph = nnx.graphdef(NnxGPT(shape, remat, nnx.Rngs(0)))

    def loss(model: NnxGPT, tokens: jax.Array, following: jax.Array) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(model(tokens), following).mean()

    def step(state: Any, tokens: jax.Array, following: jax.Array) -> Any:
        value, gradient = nnx.value_and_grad(loss)(nnx.merge(graph, state), tokens, following)
        return value, jax.tree.map(lambda p, g: p - 0.01 * g, state, gradient)

    def arguments(seed: int) -> tuple[Any, ...]:
        state = nnx.state(NnxGPT(shape, remat, nnx.Rngs(seed)), nnx.Param)
        return state, *texts(seed, shape.rows, shape.length, shape.words)

    return Built(step, arguments)
