"""Counterparts in JAX of the nets that run in MindSpore and Paddle: the same operations, weights and loss.

Sources: MindSpore's recomputation tutorial and the example of `mindspore.recompute`; the example of
`paddle.distributed.fleet.utils.recompute`; Paddle's static `RecomputeOptimizer` on four layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

Function: TypeAlias = Callable[..., Any]
BLOCKS = 10
LAYERS = 4
SEGMENT = ("segment0", "segment1", "segment1", "tail")


def of(*dimensions: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(dimensions, dtype)


def pulled_back(net: Function, requested: Sequence[int] = (0,)) -> Function:
    """Return the gradient alone for a cotangent of ones, as MindSpore's GradOperation does."""

    def gradient(*arguments: Any) -> Any:
        result, back = jax.vjp(net, *arguments)
        gradients = back(jnp.ones_like(result))
        return tuple(gradients[index] for index in requested)

    return gradient


def attention(x: jax.Array, y: jax.Array, key: jax.Array | None) -> jax.Array:
    """Apply one block of the tutorial to (8, 128, 16, 32); with a key, dropout keeps 0.9 of the values."""
    query = jnp.transpose(x, (0, 2, 1, 3)) / jnp.float32(2.37891)
    other = jnp.transpose(x, (0, 2, 3, 1)) / jnp.float32(2.37891)
    mask = (jnp.float32(1.0) - jnp.expand_dims(y, 1)) * jnp.float32(-0.0001)
    weights = jax.nn.softmax(mask + query @ other, axis=-1)
    if key is not None:
        weights = jnp.where(jax.random.bernoulli(key, 0.9, weights.shape), weights / 0.9, 0.0)
    return jnp.transpose(weights @ jnp.transpose(x, (0, 2, 1, 3)), (0, 2, 1, 3))


def attention_net(x: jax.Array, *masks: jax.Array, keys: jax.Array | None = None) -> jax.Array:
    for index, y in enumerate(masks):
        with jax.named_scope(f"block{index}"):
            x = attention(x, y, None if keys is None else keys[index])
    return x


def attention_with_dropout(keys: jax.Array, x: jax.Array, *masks: jax.Array) -> jax.Array:
    return attention_net(x, *masks, keys=keys)


def conv_relu(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Apply a convolution, which is the cell, and relu. `mindspore.nn.Conv2d(2, 2, 2)` pads like SAME, bottom and right
    first."""
    with jax.named_scope("cell"):
        y = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
    return jax.nn.relu(y)


def chain(*steps: Function) -> Function:
    """Return a net of ten cells of unary operations."""

    def net(x: jax.Array) -> jax.Array:
        for index in range(BLOCKS):
            with jax.named_scope(f"block{index}"):
                for step in steps:
                    x = step(x)
        return x

    return net


def fleet_block(x: jax.Array, weights: Sequence[jax.Array], mask: jax.Array) -> jax.Array:
    """Apply fc, dropout 0.5, relu, fc, relu, fc, without biases. The mask is an argument, so that both systems use the
    same."""
    hidden = jax.nn.relu(jnp.where(mask, x @ weights[0] / jnp.float32(0.5), 0.0))
    return jax.nn.relu(hidden @ weights[1]) @ weights[2]


def fleet_loss(weights: Sequence[jax.Array], x: jax.Array, masks: Sequence[jax.Array]) -> jax.Array:
    for index, mask in enumerate(masks):
        with jax.named_scope(f"block{index}"):
            x = fleet_block(x, weights[3 * index : 3 * index + 3], mask)
    return jnp.mean(x)


def mean_square(x: jax.Array, label: jax.Array) -> jax.Array:
    difference = x - label
    return jnp.mean(difference * difference)


def fc(x: jax.Array, parameters: Sequence[jax.Array], index: int) -> jax.Array:
    return x @ parameters[2 * index] + parameters[2 * index + 1]


def no_noise(key: Any, x: jax.Array) -> jax.Array:
    return x


def halved(key: Any, x: jax.Array) -> jax.Array:
    """Apply dropout 0.5 with a key."""
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x / 0.5, 0.0)


def gumbel_softmax(key: Any, x: jax.Array) -> jax.Array:
    return jax.nn.softmax(x + jax.random.gumbel(key, x.shape))


def rrelu(key: Any, x: jax.Array) -> jax.Array:
    """Return `x - 0.5`, with a random slope where it is negative."""
    slope = jax.random.uniform(key, x.shape, minval=1 / 8, maxval=1 / 3)
    return jnp.where(x >= 0.5, x - 0.5, slope * (x - 0.5))


def layers_loss(noise: Function = no_noise) -> Function:
    """Return the loss of 4 x (fc + relu + noise), fc, mean square error.

    Checkpoints after layers 0 and 2 delimit the segments {0} and {1, 2}.
    """

    def loss(parameters: Sequence[jax.Array], x: jax.Array, label: jax.Array, keys: Any = (None,) * 4) -> jax.Array:
        for index in range(LAYERS):
            with jax.named_scope(f"{SEGMENT[index]}/layer{index}"):
                x = noise(keys[index], jax.nn.relu(fc(x, parameters, index)))
        return mean_square(fc(x, parameters, LAYERS), label)

    return loss


def mlp_loss(parameters: Sequence[jax.Array], x: jax.Array, label: jax.Array) -> jax.Array:
    """Return the cross entropy of fc, fc with softmax; both have a checkpoint."""
    with jax.named_scope("segment0"):
        hidden = fc(x, parameters, 0)
    with jax.named_scope("segment1"):
        prediction = jax.nn.softmax(fc(hidden, parameters, 1))
    picked = jnp.sum(jnp.where(label == jnp.arange(2), prediction, 0.0), axis=1)
    return jnp.mean(-jnp.log(picked))


def branches_loss(parameters: Sequence[jax.Array], x: jax.Array, label: jax.Array) -> jax.Array:
    """Return the loss of two parallel branches of two layers."""
    with jax.named_scope("left"):
        left = jnp.tanh(fc(jnp.tanh(fc(x, parameters, 0)), parameters, 1))
    with jax.named_scope("right"):
        right = jnp.tanh(fc(jnp.tanh(fc(x, parameters, 2)), parameters, 3))
    return mean_square(fc(left + right, parameters, 4), label)


def noisy_loss(x: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the sum of the squares of exp(tanh(dropout(x))), and the value itself."""
    with jax.named_scope("cell"):
        value = jnp.exp(jnp.tanh(halved(key, x)))
    return jnp.sum(value * value), value


def batch_norm_loss(x: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Normalize over all dimensions but the channels and apply exp(tanh(.)); return the value and the new running
    statistics."""
    with jax.named_scope("cell"):
        mean = jnp.mean(x, (0, 2, 3))
        centred = x - mean[:, None, None]
        variance = jnp.mean(centred * centred, (0, 2, 3))
        normal = centred * lax.rsqrt(variance + 1e-5)[:, None, None]
        value = jnp.exp(jnp.tanh(normal))
    count = x.size // x.shape[1]
    running = 0.1 * mean, 0.9 + 0.1 * variance * count / (count - 1)
    return jnp.sum(value * value), (value, *running)
