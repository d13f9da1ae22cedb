"""A vision Transformer with dropout, written with Equinox and batched by `jax.vmap`."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax

from recompute.benchmarks.peers.peer import SMALL, Built, Remat, cross_entropy, images, policy_of

CLASSES = 10


class EquinoxBlock(eqx.Module):
    """A Transformer block: attention and MLP, each after a normalization."""

    norm1: eqx.nn.LayerNorm
    norm2: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    up: eqx.nn.Linear
    down: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __init__(self, width: int, heads: int, key: jax.Array):
        keys = jax.random.split(key, 3)
        self.norm1, self.norm2 = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)
        self.attention = eqx.nn.MultiheadAttention(heads, width, key=keys[0])
        self.up = eqx.nn.Linear(width, 4 * width, key=keys[1])
        self.down = eqx.nn.Linear(4 * width, width, key=keys[2])
        self.dropout = eqx.nn.Dropout(0.1)

    def __call__(self, x: jax.Array, key: jax.Array) -> jax.Array:
        features = jax.vmap(self.norm1)(x)
        x = x + self.attention(features, features, features)
        hidden = jax.nn.gelu(jax.vmap(self.up)(jax.vmap(self.norm2)(x)))
        return x + self.dropout(jax.vmap(self.down)(hidden), key=key)


class EquinoxViT(eqx.Module):
    """A vision Transformer that classifies images of shape (3, side, side)."""

    patches: eqx.nn.Conv2d
    positions: jax.Array
    blocks: list[EquinoxBlock]
    head: eqx.nn.Linear
    remat: Remat = eqx.field(static=True)

    def __init__(self, side: int, width: int, layers: int, remat: Remat, key: jax.Array):
        keys = jax.random.split(key, layers + 3)
        self.patches = eqx.nn.Conv2d(3, width, 4, stride=4, key=keys[0])
        self.positions = 0.1 * jax.random.normal(keys[1], ((side // 4) ** 2, width))
        self.head = eqx.nn.Linear(width, CLASSES, key=keys[2])
        self.blocks = [EquinoxBlock(width, 4, key) for key in keys[3:]]
        self.remat = remat

    def __call__(self, pixels: jax.Array, key: jax.Array) -> jax.Array:
        features = self.patches(pixels.transpose(2, 0, 1))
        x = features.reshape(features.shape[0], -1).T + self.positions
        for block, own in zip(self.blocks, jax.random.split(key, len(self.blocks)), strict=True):
            run = eqx.filter_checkpoint(block, policy=policy_of(self.remat)) if self.remat else block
            x = run(x, own)
        return self.head(x.mean(0))


def build(remat: Remat, size: str) -> Built:
    """Build the training step of the given size, plain or with remat."""
    rows, side, width, layers = (4, 16, 32, 3) if size == SMALL else (32, 64, 96, 5)

    def model(seed: int) -> Any:
        return eqx.partition(EquinoxViT(side, width, layers, remat, jax.random.key(seed)), eqx.is_array)

    _, static = model(0)

    def loss(arrays: Any, pixels: jax.Array, labels: jax.Array, key: jax.Array) -> jax.Array:
        whole = eqx.combine(arrays, static)
        return cross_entropy(jax.vmap(whole)(pixels, jax.random.split(key, len(pixels))), labels)

    def step(arrays: Any, *batch: jax.Array) -> Any:
        value, gradient = jax.value_and_grad(loss)(arrays, *batch)
        return value, eqx.apply_updates(arrays, jax.tree.map(lambda g: -0.01 * g, gradient))

    def arguments(seed: int) -> tuple[Any, ...]:
        return model(seed)[0], *images(seed, rows, side, CLASSES), jax.random.key(seed + 1)

    return Built(step, arguments, {"donate_argnums": 0})
