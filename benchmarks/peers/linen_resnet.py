"""A residual network with batch normalization, written with Flax Linen and trained with momentum."""

from __future__ import annotations

from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from recompute.benchmarks.peers.peer import SMALL, Built, Remat, images, policy_of

CLASSES = 10


class ResNetBlock(nn.Module):
    """A residual block with two convolutions and batch normalization."""

    channels: int
    stride: int = 1

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        conv = partial(nn.Conv, use_bias=False)
        norm = partial(nn.BatchNorm, use_running_average=not train)
        y = nn.relu(norm()(conv(self.channels, (3, 3), (self.stride, self.stride))(x)))
        y = norm(scale_init=nn.initializers.constant(0.5))(conv(self.channels, (3, 3))(y))
        if x.shape != y.shape:
            x = norm()(conv(self.channels, (1, 1), (self.stride, self.stride))(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    """A residual network that classifies images of shape (rows, side, side, 3)."""

    channels: tuple[int, ...]
    remat: Remat

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = True) -> jax.Array:
        x = nn.Conv(self.channels[0], (3, 3))(x)
        layer = ResNetBlock
        if self.remat:
            layer = nn.remat(ResNetBlock, static_argnums=(2,), policy=policy_of(self.remat))
        for number, channels in enumerate(self.channels):
            stride = 1 if channels == x.shape[-1] else 2
            x = layer(channels, stride, name=f"ResNetBlock_{number}")(x, train)
        return nn.Dense(CLASSES)(x.mean((1, 2)))


def build(remat: Remat, size: str) -> Built:
    """Build the training step of the given size, plain or with remat."""
    rows, side, channels = (4, 16, (8, 8, 16)) if size == SMALL else (32, 32, (32, 32, 32, 64, 64, 64))
    model, optimizer = ResNet(channels, remat), optax.sgd(0.1, momentum=0.9)

    def loss(parameters: Any, statistics: Any, pixels: jax.Array, labels: jax.Array) -> Any:
        variables = {"params": parameters, "batch_stats": statistics}
        logits, changed = model.apply(variables, pixels, mutable=["batch_stats"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), changed["batch_stats"]

    def step(state: Any, *batch: jax.Array) -> Any:
        parameters, statistics, moments = state
        (value, statistics), gradient = jax.value_and_grad(loss, has_aux=True)(parameters, statistics, *batch)
        updates, moments = optimizer.update(gradient, moments, parameters)
        return (optax.apply_updates(parameters, updates), statistics, moments), value

    def arguments(seed: int) -> tuple[Any, ...]:
        variables = model.init(jax.random.key(seed), jnp.zeros((1, side, side, 3)), train=False)
        parameters, statistics = variables["params"], variables["batch_stats"]
        return (parameters, statistics, optimizer.init(parameters)), *images(seed, rows, side, CLASSES)

    return Built(step, arguments, {"donate_argnums": 0})
