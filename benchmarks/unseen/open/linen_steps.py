"""Steps written with Flax Linen, which names scopes by itself."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax

from recompute.benchmarks.unseen.open.open_layers import cross_entropy
from recompute.benchmarks.unseen.step_parts import UnseenStep, adam, adam_state, integers, momentum, shape


class ConvBlock(nn.Module):
    features: int
    stride: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        strides = (self.stride, self.stride)
        y = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Conv(self.features, (3, 3), strides)(x)))
        y = nn.BatchNorm(use_running_average=False)(nn.Conv(self.features, (3, 3))(y))
        if x.shape != y.shape:
            x = nn.Conv(self.features, (1, 1), strides, name="shortcut")(x)
        return nn.relu(x + y)


class ConvNet(nn.Module):
    remat: bool

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        block = nn.remat(ConvBlock) if self.remat else ConvBlock
        x = nn.Conv(16, (3, 3), name="stem")(x)
        for i, (features, stride) in enumerate([(16, 1), (16, 1), (32, 2), (32, 1), (48, 2)]):
            x = block(features, stride, name=f"ResNetBlock_{i}")(x)
        return nn.Dense(32, name="classifier")(x.mean((1, 2)))


def linen_resnet(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a ResNet with batch normalization, and returns its running statistics."""
    model, image = ConvNet(checkpoint), shape(8, 64, 64, 3)
    variables = jax.eval_shape(model.init, jax.random.key(0), image)
    params, statistics = variables["params"], variables["batch_stats"]

    def loss(params: Any, statistics: Any, image: jax.Array, labels: jax.Array) -> tuple[jax.Array, Any]:
        both = {"params": params, "batch_stats": statistics}
        logits, changed = model.apply(both, image, mutable=["batch_stats"])
        return cross_entropy(logits, labels), changed["batch_stats"]

    def step(params: Any, velocity: Any, statistics: Any, image: jax.Array, labels: jax.Array) -> Any:
        (value, statistics), grads = jax.value_and_grad(loss, has_aux=True)(params, statistics, image, labels)
        return value, *momentum(params, grads, velocity), statistics

    return UnseenStep(step, (params, params, statistics, image, integers(8)), (0, 1, 2))


class EncoderLayer(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
        return x + nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x))))


class Encoder(nn.Module):
    remat: bool

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        layer = nn.remat(EncoderLayer) if self.remat else EncoderLayer
        embed = nn.Embed(128, 64)
        x = embed(tokens)
        for _ in range(5):
            x = layer()(x)
        return embed.attend(nn.LayerNorm(name="final_norm")(x))


def linen_encoder(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains five encoder layers, whose scopes Flax numbers automatically."""
    model, tokens = Encoder(checkpoint), integers(8, 80)
    params = jax.eval_shape(model.init, jax.random.key(0), tokens)

    def step(params: Any, state: Any, tokens: jax.Array, labels: jax.Array) -> Any:
        def loss(params: Any) -> jax.Array:
            logits: Any = model.apply(params, tokens)
            return cross_entropy(logits, labels)

        value, grads = jax.value_and_grad(loss)(params)
        return value, *adam(params, grads, state)

    return UnseenStep(step, (params, adam_state(params), tokens, tokens), (0, 1))


STEPS = {"linen_resnet": linen_resnet, "linen_encoder": linen_encoder}
