"""Six-layer GPT with dropout: a step that returns gradients, or a complete Adam step with donation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax

from .step import Step, dropout, maybe_checkpoint, shape

LAYERS = 6
RATE = 0.1
LEARNING_RATE = 3e-4

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Config:
    batch: int
    length: int
    width: int
    heads: int
    vocabulary: int


SIZES = {
    "small": Config(batch=2, length=8, width=16, heads=2, vocabulary=32),
    "large": Config(batch=8, length=256, width=256, heads=8, vocabulary=1024),
}


def layer_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5) * scale


def attention(p: Parameters, x: jax.Array, key: jax.Array, heads: int) -> jax.Array:
    batch, length, width = x.shape
    q, k, v = jnp.split(x @ p["qkv"], 3, axis=-1)
    q, k, v = (t.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3) for t in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / jnp.sqrt(width / heads)
    visible = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(visible, scores, -jnp.inf), axis=-1)
    mixed = dropout(key, weights, RATE) @ v
    return mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ p["out"]


def block(p: Parameters, x: jax.Array, key: jax.Array, heads: int) -> jax.Array:
    attention_key, hidden_key = jax.random.split(key)
    x = x + attention(p, layer_norm(x, p["norm1"]), attention_key, heads)
    hidden = jax.nn.gelu(layer_norm(x, p["norm2"]) @ p["up"])
    return x + dropout(hidden_key, hidden @ p["down"], RATE)


def forward(p: Parameters, tokens: jax.Array, targets: jax.Array, key: jax.Array, config: Config, checkpoint: bool):
    x = p["embedding"][tokens] + p["position"]
    for index, layer in enumerate(p["layers"]):
        with jax.named_scope(f"block{index}"):
            run = maybe_checkpoint(lambda q, y, k: block(q, y, k, config.heads), checkpoint)
            x = run(layer, x, jax.random.fold_in(key, index))
    logits = layer_norm(x, p["norm"]) @ p["embedding"].T
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
    return -jnp.mean(chosen)


def parameters_of(config: Config) -> Parameters:
    width = config.width
    layer = {
        "norm1": shape(width),
        "qkv": shape(width, 3 * width),
        "out": shape(width, width),
        "norm2": shape(width),
        "up": shape(width, 4 * width),
        "down": shape(4 * width, width),
    }
    return {
        "embedding": shape(config.vocabulary, width),
        "position": shape(config.length, width),
        "layers": [dict(layer) for _ in range(LAYERS)],
        "norm": shape(width),
    }


def build(size: str, checkpoint: bool = False, train: bool = False) -> Step:
    """Build the step. `train`: whether it also updates donated parameters and moments with Adam."""
    config = SIZES[size]
    optimizer = optax.adam(LEARNING_RATE)

    def gradients(p: Parameters, tokens: jax.Array, targets: jax.Array, key: jax.Array):
        return jax.value_and_grad(forward)(p, tokens, targets, key, config, checkpoint)

    def train_step(p: Parameters, state: Any, tokens: jax.Array, targets: jax.Array, key: jax.Array):
        value, gradient = gradients(p, tokens, targets, key)
        updates, state = optimizer.update(gradient, state)
        return value, optax.apply_updates(p, updates), state

    parameters = parameters_of(config)
    tokens = shape(config.batch, config.length, dtype=jnp.int32)
    data = (tokens, tokens, shape(2, dtype=jnp.uint32))
    if not train:
        return Step(gradients, (parameters, *data))
    state = jax.eval_shape(optimizer.init, parameters)
    return Step(train_step, (parameters, state, *data), donated=(0, 1))
