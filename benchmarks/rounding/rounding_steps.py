"""Steps that XLA:CPU rounds differently after `jax.checkpoint` or this compiler has rewritten them.

Each step is plain JAX, uses common layers, and is as small as possible while it still shows a difference.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from recompute.examples.models.step import Step, maybe_checkpoint, shape

Parameters = dict[str, jax.Array]
Turn = Callable[[jax.Array], jax.Array]
LAYERS = 3
RATE, FIRST, SECOND = 1e-3, 0.9, 0.999


def in_layers(block: Callable[..., jax.Array], checkpoint: bool) -> Callable[..., jax.Array]:
    """Return a function that applies `block(parameters, x)` to each entry of a list of parameters, each in a scope."""

    def run(layers: list[Parameters], x: jax.Array) -> jax.Array:
        for index, p in enumerate(layers):
            with jax.named_scope(f"block{index}"):
                x = maybe_checkpoint(block, checkpoint)(p, x)
        return x

    return run


def layer_norm(scale: jax.Array, x: jax.Array) -> jax.Array:
    """Apply layer normalization with `jnp.var`, which JAX lowers to a function call."""
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * scale


def identity(x: jax.Array) -> jax.Array:
    """Return the argument unchanged, in place of the rotation in attention without rotary positions."""
    return x


def attention(p: Parameters, x: jax.Array, turn: Turn, heads: int = 2) -> jax.Array:
    """Apply attention to x of shape (batch, length, width). `turn` transforms the queries and keys."""
    batch, length, width = x.shape
    parts = jnp.split(x @ p["qkv"], 3, axis=-1)
    q, k, v = (t.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3) for t in parts)
    scores = turn(q) @ turn(k).swapaxes(-1, -2) / jnp.sqrt(width / heads)
    return (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, length, width) @ p["out"]


def transformer_block(turn: Turn = identity):
    """Return a Transformer block that applies `turn` to queries and keys."""

    def block(p: Parameters, x: jax.Array) -> jax.Array:
        x = x + attention(p, layer_norm(p["norm1"], x), turn)
        return x + jax.nn.gelu(layer_norm(p["norm2"], x) @ p["up"]) @ p["down"]

    return block


def transformer_layers(width: int) -> list[dict[str, jax.ShapeDtypeStruct]]:
    """Return the shapes of the weights of `LAYERS` Transformer blocks."""
    vectors = {"norm1": shape(width), "norm2": shape(width)}
    matrices = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 2 * width), "down": (2 * width, width)}
    return [vectors | {name: shape(*sides) for name, sides in matrices.items()} for _ in range(LAYERS)]


def vision_transformer(checkpoint: bool) -> Step:
    """Build a vision Transformer with channels-first convolutional patches, and channels-last normalization."""
    width, patch = 96, 4

    def loss(p: dict[str, Any], images: jax.Array) -> jax.Array:
        patches = jax.lax.conv_general_dilated(images, p["kernel"], (patch, patch), "VALID")
        x = jnp.swapaxes(patches.reshape(*patches.shape[:2], -1), 1, 2) + p["position"]
        x = in_layers(transformer_block(), checkpoint)(p["layers"], x)
        return jnp.mean(layer_norm(p["norm"], x) ** 2)

    ends = {"kernel": shape(width, 3, patch, patch), "position": shape(64, width), "norm": shape(width)}
    return Step(jax.value_and_grad(loss), (ends | {"layers": transformer_layers(width)}, shape(2, 3, 32, 32)))


@jax.jit
def normalized(scale: jax.Array, shift: jax.Array, x: jax.Array) -> jax.Array:
    """Apply layer normalization in a function that calls other functions. Tiny variances are replaced with one."""
    variance = jnp.var(x, -1, keepdims=True)
    safe = jnp.where(variance > 1e-12, variance, 1.0)
    return (x - jnp.mean(x, -1, keepdims=True)) * jax.lax.rsqrt(safe + 1e-5) * scale + shift


def patches_with_adam(checkpoint: bool) -> Step:
    """Build a complete Adam step of a vision Transformer whose layers call functions."""
    width, patch, heads, classes = 96, 4, 2, 10

    def block(p: Parameters, x: jax.Array) -> jax.Array:
        y = attention({"qkv": p["qkv"], "out": p["out"]}, normalized(p["norm1"], p["shift1"], x), identity, heads)
        x = x + y
        return x + jax.nn.gelu(normalized(p["norm2"], p["shift2"], x) @ p["up"], approximate=False) @ p["down"]

    def loss(p: dict[str, Any], images: jax.Array) -> jax.Array:
        patches = jax.lax.conv_general_dilated(images, p["kernel"], (patch, patch), "VALID")
        x = jnp.swapaxes(patches.reshape(*patches.shape[:2], -1), 1, 2) + p["position"]
        x = in_layers(block, checkpoint)(p["layers"], x)
        log_probabilities = jax.nn.log_softmax(jnp.mean(normalized(p["norm"], p["shift"], x), 1) @ p["head"])
        return -jnp.mean(log_probabilities[:, 0])

    def step(p: dict[str, Any], moments: dict[str, Any], images: jax.Array):
        value, gradient = jax.value_and_grad(loss)(p, images)
        squares = jax.tree.map(
            jnp.abs, moments["nu"]
        )  # The random inputs may be negative, but means of squares are not.
        return value, *adam_update(p, moments | {"nu": squares}, gradient)

    ends = {"kernel": shape(width, 3, patch, patch), "position": shape(64, width), "head": shape(width, classes)}
    ends |= {"norm": shape(width), "shift": shape(width)}
    shifts = {"shift1": shape(width), "shift2": shape(width)}
    p = ends | {"layers": [layer | shifts for layer in transformer_layers(width)]}
    return Step(step, (p, {"mu": p, "nu": p}, shape(2, 3, 32, 32)), donated=(0, 1))


def rotated(t: jax.Array) -> jax.Array:
    """Rotate pairs of features by an angle that grows with the position."""
    pairs = t.shape[-1] // 2
    angle = jnp.arange(t.shape[-2])[:, None] * 10000.0 ** (-jnp.arange(pairs) / pairs)
    even, odd = t[..., ::2], t[..., 1::2]
    turned = even * jnp.cos(angle) - odd * jnp.sin(angle), even * jnp.sin(angle) + odd * jnp.cos(angle)
    return jnp.stack(turned, -1).reshape(t.shape)


def language_model(checkpoint: bool, turn: Turn = identity, tied: bool = False) -> Step:
    """Build a language model. `tied`: whether the output matrix is the embedding."""
    width, vocabulary = 32, 64

    def loss(p: dict[str, Any], tokens: jax.Array) -> jax.Array:
        x = in_layers(transformer_block(turn), checkpoint)(p["layers"], p["embedding"][tokens])
        log_probabilities = jax.nn.log_softmax(layer_norm(p["norm"], x) @ (p["embedding"].T if tied else p["head"]))
        return -jnp.mean(jnp.take_along_axis(log_probabilities, tokens[..., None], axis=-1))

    ends = {"embedding": shape(vocabulary, width), "norm": shape(width)}
    head = {} if tied else {"head": shape(width, vocabulary)}
    parameters = ends | head | {"layers": transformer_layers(width)}
    return Step(jax.value_and_grad(loss), (parameters, shape(2, 16, dtype=jnp.int32)))


def group_norm(checkpoint: bool) -> Step:
    """Build convolutional layers with group normalization, which computes the variance from two means."""
    channels, groups = 16, 4

    def normalized(p: Parameters, x: jax.Array) -> jax.Array:
        parts = x.reshape(*x.shape[:3], groups, channels // groups)
        mean = jnp.mean(parts, (1, 2, 4), keepdims=True)
        variance = jnp.mean(parts**2, (1, 2, 4), keepdims=True) - mean**2
        return ((parts - mean) * jax.lax.rsqrt(variance + 1e-5)).reshape(x.shape) * p["scale"] + p["shift"]

    def block(p: Parameters, x: jax.Array) -> jax.Array:
        layout = ("NHWC", "HWIO", "NHWC")
        convolved = jax.lax.conv_general_dilated(x, p["kernel"], (1, 1), "SAME", dimension_numbers=layout)
        return x + jax.nn.relu(normalized(p, convolved))

    def loss(layers: list[Parameters], x: jax.Array) -> jax.Array:
        return jnp.mean(in_layers(block, checkpoint)(layers, x) ** 2)

    layer = {"kernel": shape(3, 3, channels, channels), "scale": shape(channels), "shift": shape(channels)}
    return Step(jax.value_and_grad(loss), ([layer for _ in range(LAYERS)], shape(2, 8, 8, channels)))


def adam_update(p: Any, moments: dict[str, Any], gradient: Any) -> tuple[Any, dict[str, Any]]:
    """Return the parameters and the moments after one step of Adam."""
    mu = jax.tree.map(lambda m, g: FIRST * m + (1 - FIRST) * g, moments["mu"], gradient)
    nu = jax.tree.map(lambda n, g: SECOND * n + (1 - SECOND) * g**2, moments["nu"], gradient)
    updated = jax.tree.map(lambda p, m, n: p - RATE * m / (jnp.sqrt(n) + 1e-8), p, mu, nu)
    return updated, {"mu": mu, "nu": nu}


def adam(checkpoint: bool) -> Step:
    """Build a complete Adam step of dense layers, with donated weights and moments."""
    width = 96

    def block(p: Parameters, x: jax.Array) -> jax.Array:
        return x + jnp.tanh(x @ p["up"] + p["bias"]) @ p["down"]

    def loss(layers: list[Parameters], x: jax.Array) -> jax.Array:
        return jnp.mean(in_layers(block, checkpoint)(layers, x) ** 2)

    def step(layers: list[Parameters], moments: dict[str, list[Parameters]], x: jax.Array):
        value, gradient = jax.value_and_grad(loss)(layers, x)
        return value, *adam_update(layers, moments, gradient)

    layer = {"up": shape(width, 2 * width), "bias": shape(2 * width), "down": shape(2 * width, width)}
    layers = [layer for _ in range(LAYERS)]
    return Step(step, (layers, {"mu": layers, "nu": layers}, shape(48, width)), donated=(0, 1))


STEPS: dict[str, Callable[[bool], Step]] = {
    "vision_transformer": vision_transformer,
    "patches_with_adam": patches_with_adam,
    "rotary_positions": partial(language_model, turn=rotated),
    "tied_embeddings": partial(language_model, tied=True),
    "group_norm": group_norm,
    "adam": adam,
}
