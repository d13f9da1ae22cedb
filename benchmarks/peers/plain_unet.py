"""A U-Net in plain JAX. Each level has a scope name and two convolutions, and skip connections join the two halves."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from recompute.benchmarks.peers.peer import SMALL, Built, Remat, checkpointed, descent, matrix


def conv(w: jax.Array, x: jax.Array) -> jax.Array:
    """Convolve x of shape (rows, height, width, channels) without changing its height and width."""
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def normalized(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Normalize x over height and width, and multiply it by `scale`."""
    mean, spread = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    return (x - mean) * jax.lax.rsqrt(spread + 1e-5) * scale


def double(w: dict[str, Any], x: jax.Array) -> jax.Array:
    """Apply two convolutions, each followed by a normalization."""
    x = jax.nn.silu(normalized(conv(w["first"], x), w["scale1"]))
    return jax.nn.silu(normalized(conv(w["second"], x), w["scale2"]))


def pooled(x: jax.Array) -> jax.Array:
    """Halve height and width by max pooling."""
    rows, high, wide, channels = x.shape
    return x.reshape(rows, high // 2, 2, wide // 2, 2, channels).max((2, 4))


def doubled(x: jax.Array) -> jax.Array:
    """Double height and width by repetition."""
    return x.repeat(2, axis=1).repeat(2, axis=2)


def loss_of(remat: Remat) -> Any:
    """Return the loss function: the mean squared error between the network's output and the clean images."""
    run = checkpointed(double, remat)

    def loss(weights: Any, noisy: jax.Array, clean: jax.Array) -> jax.Array:
        x, skips = noisy, list[jax.Array]()
        for level, w in enumerate(weights["down"]):
            with jax.named_scope(f"level_down{level}"):
                x = run(w, x)
            skips.append(x)
            x = pooled(x)
        with jax.named_scope("level_middle"):
            x = run(weights["middle"], x)
        for level, w in enumerate(weights["up"]):
            with jax.named_scope(f"level_up{level}"):
                x = run(w, jnp.concatenate([doubled(x), skips.pop()], -1))
        return jnp.mean((conv(weights["out"], x) - clean) ** 2)

    return loss


def weights_of(seed: int, channels: tuple[int, ...]) -> Any:
    """Draw the weights of a network whose levels have the given numbers of channels."""
    draw = np.random.default_rng(seed)

    def pair(before: int, after: int) -> dict[str, Any]:
        first, second = matrix(draw, 3, 3, before, after), matrix(draw, 3, 3, after, after)
        return {"first": first, "second": second, "scale1": jnp.ones(after), "scale2": jnp.ones(after)}

    downs = zip((3, *channels), channels, strict=False)
    lowest, ups = 2 * channels[-1], list[Any]()
    below = lowest
    for wide in reversed(channels):
        ups.append(pair(below + wide, wide))
        below = wide
    ends = {"middle": pair(channels[-1], lowest), "out": matrix(draw, 1, 1, channels[0], 3)}
    return {"down": [pair(*down) for down in downs], "up": ups, **ends}


def build(remat: Remat, size: str) -> Built:
    """Build the training step of the given size, plain or with remat."""
    rows, side, channels = (2, 16, (8, 16)) if size == SMALL else (8, 64, (16, 32, 64))

    def arguments(seed: int) -> tuple[Any, ...]:
        images = np.random.default_rng(seed + 1).normal(0, 1, (2, rows, side, side, 3))
        return weights_of(seed, channels), *jnp.asarray(images, jnp.float32)

    return Built(descent(loss_of(remat)), arguments)
