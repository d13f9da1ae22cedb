"""Steps that train Transformers: a decoder, a masked encoder, a vision Transformer, and an encoder-decoder."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.open.open_layers import (
    attend,
    cross_entropy,
    dense,
    layer_norm,
    linear,
    normed,
    rms_norm,
    split_heads,
)
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, key_data, sgd, shape


def gpt_rotary(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a decoder with rotary positions, grouped queries, RMSNorm and SwiGLU."""
    run = Blocks(checkpoint, scopes)
    width, heads, kv_heads = 64, 4, 2

    def rotate(x: jax.Array) -> jax.Array:
        half = x.shape[-1] // 2
        angles = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
        sin, cos = jnp.sin(angles)[:, None, :], jnp.cos(angles)[:, None, :]
        a, b = x[..., :half], x[..., half:]
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

    def block(p: Any, x: jax.Array) -> jax.Array:
        y = rms_norm(x, p["n1"])
        q, k, v = split_heads(y @ p["q"], heads), split_heads(y @ p["k"], kv_heads), split_heads(y @ p["v"], kv_heads)
        k, v = (jnp.repeat(a, heads // kv_heads, axis=2) for a in (rotate(k), v))
        x = x + attend(rotate(q), k, v, jnp.tril(jnp.ones((x.shape[1], x.shape[1])))) @ p["o"]
        y = rms_norm(x, p["n2"])
        return x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        x = params["embed"][tokens]
        for i, p in enumerate(params["layers"]):
            x = run(f"decoder/layer_{i}", block, p, x)
        return cross_entropy((rms_norm(x, params["norm"]) @ params["embed"].T)[:, :-1], tokens[:, 1:])

    def step(params: Any, state: Any, tokens: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, tokens)
        return value, *adam(params, grads, state, decay=0.1)

    entry = {
        "n1": shape(width),
        "n2": shape(width),
        "q": shape(width, width),
        "k": shape(width, width // 2),
        "v": shape(width, width // 2),
        "o": shape(width, width),
        "gate": shape(width, 172),
        "up": shape(width, 172),
        "down": shape(172, width),
    }
    params = {"embed": shape(512, width), "layers": [entry] * 6, "norm": shape(width)}
    return UnseenStep(step, (params, adam_state(params), integers(4, 128)), donate=(0, 1))


def bert_dropout(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a post-norm masked language model with three dropouts in each layer."""
    run = Blocks(checkpoint, scopes)

    def dropout(key: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0.0)

    def block(p: Any, x: jax.Array, mask: jax.Array, key: jax.Array) -> jax.Array:
        first, second, third = jax.random.split(key, 3)
        q, k, v = (split_heads(dense(p[name], x), 4) for name in ("query", "key", "value"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 4.0 + (1.0 - mask[:, None, None, :]) * -1e9
        weights = dropout(first, jax.nn.softmax(scores, axis=-1))
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape)
        x = layer_norm(x + dropout(second, dense(p["mix"], mixed)), **p["n1"])
        y = dense(p["out"], jax.nn.gelu(dense(p["in"], x), approximate=False))
        return layer_norm(x + dropout(third, y), **p["n2"])

    def loss(params: Any, tokens: jax.Array, labels: jax.Array, raw: jax.Array) -> jax.Array:
        key = jax.random.wrap_key_data(raw, impl="threefry2x32")
        mask = (tokens > 0).astype(jnp.float32).at[:, 0].set(1.0)
        x = layer_norm(params["embed"][tokens] + params["positions"], **params["norm"])
        for i, p in enumerate(params["layers"]):
            x = run(f"bert/encoder/layer_{i}", block, p, x, mask, jax.random.fold_in(key, i))
        return cross_entropy(dense(params["head"], x), labels)

    entry = {name: linear(64, 64) for name in ("query", "key", "value", "mix")}
    entry |= {"in": linear(64, 256), "out": linear(256, 64), "n1": normed(64), "n2": normed(64)}
    params = {"embed": shape(200, 64), "positions": shape(96, 64), "norm": normed(64), "head": linear(64, 200)}
    params |= {"layers": [entry] * 5}
    return UnseenStep(jax.value_and_grad(loss), (params, integers(8, 96), integers(8, 96), key_data()))


def vit(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a pre-norm vision Transformer with a class token."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        q, k, v = (split_heads(a, 6) for a in jnp.split(dense(p["qkv"], layer_norm(x, **p["n1"])), 3, axis=-1))
        x = x + dense(p["mix"], attend(q, k, v))
        return x + dense(p["out"], jax.nn.gelu(dense(p["in"], layer_norm(x, **p["n2"]))))

    def loss(params: Any, image: jax.Array, labels: jax.Array) -> jax.Array:
        batch, side = image.shape[0], image.shape[1] // 8
        patches = image.reshape(batch, side, 8, side, 8, 3).transpose(0, 1, 3, 2, 4, 5).reshape(batch, side * side, -1)
        x = dense(params["patch"], patches)
        token = jnp.broadcast_to(params["token"], (batch, 1, x.shape[-1]))
        x = jnp.concatenate([token, x], axis=1) + params["positions"]
        for i, p in enumerate(params["layers"]):
            x = run(f"transformer/encoderblock_{i}", block, p, x)
        return cross_entropy(dense(params["head"], layer_norm(x[:, 0], **params["norm"])), labels)

    def step(params: Any, image: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, labels)
        return sgd(params, grads), value

    entry = {"qkv": linear(96, 288), "mix": linear(96, 96), "in": linear(96, 384), "out": linear(384, 96)}
    entry |= {"n1": normed(96), "n2": normed(96)}
    params = {"patch": linear(192, 96), "token": shape(96), "positions": shape(65, 96), "layers": [entry] * 6}
    params |= {"norm": normed(96), "head": linear(96, 50)}
    return UnseenStep(step, (params, shape(8, 64, 64, 3), integers(8)))


def t5(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains T5, an encoder-decoder whose layers share relative position biases."""
    run = Blocks(checkpoint, scopes)
    width, heads, length = 48, 4, 80

    def attention(p: Any, x: jax.Array, memory: jax.Array, bias: jax.Array) -> jax.Array:
        q, k, v = (
            split_heads(x @ p["q"], heads),
            split_heads(memory @ p["k"], heads),
            split_heads(memory @ p["v"], heads),
        )
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) + bias
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(x.shape) @ p["o"]

    def feed(p: Any, x: jax.Array) -> jax.Array:
        return (jax.nn.gelu(x @ p["wi0"]) * (x @ p["wi1"])) @ p["wo"]

    def encode(p: Any, x: jax.Array, bias: jax.Array) -> jax.Array:
        y = rms_norm(x, p["n1"])
        x = x + attention(p["self"], y, y, bias)
        return x + feed(p["feed"], rms_norm(x, p["n2"]))

    def decode(p: Any, x: jax.Array, memory: jax.Array, bias: jax.Array) -> jax.Array:
        y = rms_norm(x, p["n1"])
        x = x + attention(p["self"], y, y, bias)
        x = x + attention(p["cross"], rms_norm(x, p["n3"]), memory, jnp.zeros(()))
        return x + feed(p["feed"], rms_norm(x, p["n2"]))

    def loss(params: Any, source: jax.Array, target: jax.Array) -> jax.Array:
        distance = jnp.arange(length)[None, :] - jnp.arange(length)[:, None]
        near = jnp.clip(distance, -15, 16) + 15
        x = params["embed"][source]
        for i, p in enumerate(params["encoder"]):
            x = run(f"encoder/block_{i}", encode, p, x, params["encoder_bias"][:, near])
        causal = params["decoder_bias"][:, near] + jnp.where(distance > 0, -1e9, 0.0)
        y = params["embed"][target]
        for i, p in enumerate(params["decoder"]):
            y = run(f"decoder/block_{i}", decode, p, y, x, causal)
        return cross_entropy((y @ params["embed"].T)[:, :-1] * width**-0.5, target[:, 1:])

    def step(params: Any, state: Any, source: jax.Array, target: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, source, target)
        return value, *adam(params, grads, state)

    mixing = {name: shape(width, width) for name in "qkvo"}
    feeding = {"wi0": shape(width, 128), "wi1": shape(width, 128), "wo": shape(128, width)}
    entry = {"self": mixing, "feed": feeding, "n1": shape(width), "n2": shape(width)}
    params = {"embed": shape(400, width), "encoder_bias": shape(heads, 32), "decoder_bias": shape(heads, 32)}
    params |= {"encoder": [entry] * 4, "decoder": [entry | {"cross": mixing, "n3": shape(width)}] * 4}
    return UnseenStep(step, (params, adam_state(params), integers(8, length), integers(8, length)), donate=(0, 1))


STEPS = {"gpt_rotary": gpt_rotary, "bert_dropout": bert_dropout, "vit": vit, "t5": t5}
