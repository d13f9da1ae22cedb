"""Steps with attention: decoders, windows over images, speech to text, and attention along the axes of a grid."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.held_back.layers import affine, attention, conv, layer_norm, log_loss, matrix, vectors
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, momentum, sgd, shape


def gpt_private_gelu(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a GPT, in which both halves of a block call the same jitted function."""
    run = Blocks(checkpoint, scopes)

    @jax.jit
    def _quick_gelu(x: jax.Array) -> jax.Array:
        return x * jax.nn.sigmoid(1.702 * x)

    def block(p: Any, x: jax.Array) -> jax.Array:
        q, k, v = jnp.split(affine(p["attn"], layer_norm(p["ln_1"], x)), 3, axis=-1)
        x = x + affine(p["proj"], _quick_gelu(attention(q, k, v, 4, causal=True)))
        return x + affine(p["fc_out"], _quick_gelu(affine(p["fc"], layer_norm(p["ln_2"], x))))

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        x = params["wte"][tokens] + params["wpe"]
        for i, p in enumerate(params["h"]):
            x = run(f"transformer.h.{i}", block, p, x)
        return log_loss((layer_norm(params["ln_f"], x) @ params["wte"].T)[:, :-1], tokens[:, 1:])

    def step(params: Any, state: Any, tokens: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, tokens)
        return value, *adam(params, grads, state, decay=0.1)

    entry = {"ln_1": vectors(72), "ln_2": vectors(72), "attn": matrix(72, 216), "proj": matrix(72, 72)}
    entry |= {"fc": matrix(72, 288), "fc_out": matrix(288, 72)}
    params = {"wte": shape(320, 72), "wpe": shape(112, 72), "h": [entry] * 5, "ln_f": vectors(72)}
    return UnseenStep(step, (params, adam_state(params), integers(4, 112)), donate=(0, 1))


def parallel_bf16(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains parallel attention and SwiGLU in bf16 from f32 weights, with multi-query attention."""
    run = Blocks(checkpoint, scopes, inside=True)
    width, heads, size = 64, 4, 16

    def norm(g: jax.Array, x: jax.Array) -> jax.Array:
        y = x.astype(jnp.float32)
        return (g * y / jnp.sqrt(jnp.mean(y * y, axis=-1, keepdims=True) + 1e-6)).astype(x.dtype)

    def rotate(x: jax.Array) -> jax.Array:
        angle = jnp.outer(jnp.arange(x.shape[1]), 1.0 / 500.0 ** (jnp.arange(0, size, 2) / size))[None, :, None, :]
        even, odd = x[..., 0::2].astype(jnp.float32), x[..., 1::2].astype(jnp.float32)
        turned = (even * jnp.cos(angle) - odd * jnp.sin(angle), even * jnp.sin(angle) + odd * jnp.cos(angle))
        return jnp.stack(turned, axis=-1).reshape(x.shape).astype(x.dtype)

    def block(p: Any, x: jax.Array) -> jax.Array:
        y = norm(p["norm"], x)
        fused = y @ p["fused"].astype(jnp.bfloat16)
        q, k, v, gate, up = jnp.split(fused, [width, width + size, width + 2 * size, width + 2 * size + 128], axis=-1)
        q = rotate(q.reshape(*q.shape[:2], heads, size)).reshape(q.shape)
        k = jnp.tile(rotate(k[:, :, None, :])[:, :, 0], heads)
        mixed = attention(q, k, jnp.tile(v, heads), heads, causal=True).astype(jnp.bfloat16)
        return x + jnp.concatenate([mixed, jax.nn.silu(gate) * up], axis=-1) @ p["out"].astype(jnp.bfloat16)

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        x = params["embed"][tokens[:, :-1]].astype(jnp.bfloat16)
        for i, p in enumerate(params["layers"]):
            x = run(f"ParallelBlock_{i}", block, p, x)
        logits = (norm(params["norm"], x) @ params["head"].astype(jnp.bfloat16)).astype(jnp.float32)
        return log_loss(logits, tokens[:, 1:])

    def step(params: Any, velocity: Any, tokens: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, tokens)
        return value, *momentum(params, grads, velocity)

    entry = {"norm": shape(width), "fused": shape(width, width + 2 * size + 256), "out": shape(width + 128, width)}
    params = {"embed": shape(256, width), "layers": [entry] * 6, "norm": shape(width), "head": shape(width, 256)}
    return UnseenStep(step, (params, params, integers(6, 129)), donate=(0, 1))


def window_vit(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a vision Transformer with attention in windows, which every second layer shifts."""
    run = Blocks(checkpoint, scopes)

    def windows(x: jax.Array) -> jax.Array:
        b, h, w, c = x.shape
        return x.reshape(b, h // 4, 4, w // 4, 4, c).swapaxes(2, 3).reshape(-1, 16, c)

    def back(x: jax.Array, like: jax.Array) -> jax.Array:
        b, h, w, c = like.shape
        return x.reshape(b, h // 4, w // 4, 4, 4, c).swapaxes(2, 3).reshape(like.shape)

    def block(p: Any, x: jax.Array, shift: int) -> jax.Array:
        y = jnp.roll(layer_norm(p["n1"], x), (-shift, -shift), axis=(1, 2))
        q, k, v = jnp.split(affine(p["qkv"], windows(y)), 3, axis=-1)
        y = back(affine(p["mix"], attention(q, k, v, 4)), x)
        x = x + jnp.roll(y, (shift, shift), axis=(1, 2))
        return x + affine(p["down"], jax.nn.gelu(affine(p["up"], layer_norm(p["n2"], x))))

    def loss(params: Any, image: jax.Array, labels: jax.Array) -> jax.Array:
        x = affine(params["patch"], image)
        for s, stage in enumerate(params["stages"]):
            if s:
                b, h, w, c = x.shape
                x = x.reshape(b, h // 2, 2, w // 2, 2, c).swapaxes(2, 3).reshape(b, h // 2, w // 2, 4 * c)
                x = x @ params["merge"]
            for i, p in enumerate(stage):
                x = run(f"stage{s}/swin{i}", lambda p, x, shift=2 * (i % 2): block(p, x, shift), p, x)
        return log_loss(affine(params["head"], x.mean((1, 2))), labels)

    def step(params: Any, image: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, labels)
        return value, sgd(params, grads)

    def layer_weights(c: int) -> Any:
        norms = {"n1": vectors(c), "n2": vectors(c)}
        return {"qkv": matrix(c, 3 * c), "mix": matrix(c, c), "up": matrix(c, 3 * c), "down": matrix(3 * c, c)} | norms

    stages = [[layer_weights(40)] * 2, [layer_weights(64)] * 4]
    params = {"patch": matrix(12, 40), "stages": stages, "merge": shape(160, 64), "head": matrix(64, 32)}
    return UnseenStep(step, (params, shape(4, 32, 32, 12), integers(4)), donate=(0,))


def speech_to_text(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a speech-to-text model: convolutions, an encoder, and a decoder with cross attention."""
    run = Blocks(checkpoint, scopes)
    width, heads = 64, 4

    def drop(key: jax.Array, x: jax.Array) -> jax.Array:
        return x * jax.random.bernoulli(key, 0.8, x.shape).astype(x.dtype) / 0.8

    def feed(p: Any, x: jax.Array) -> jax.Array:
        return affine(p["down"], jax.nn.gelu(affine(p["up"], layer_norm(p["n2"], x))))

    def listen(p: Any, x: jax.Array, key: jax.Array) -> jax.Array:
        y = layer_norm(p["n1"], x)
        x = x + drop(key, attention(y @ p["q"], y @ p["k"], y @ p["v"], heads) @ p["o"])
        return x + feed(p, x)

    def write(p: Any, x: jax.Array, heard: jax.Array, key: jax.Array) -> jax.Array:
        y = layer_norm(p["n1"], x)
        x = x + attention(y @ p["q"], y @ p["k"], y @ p["v"], heads, causal=True) @ p["o"]
        y = layer_norm(p["n3"], x)
        x = x + drop(key, attention(y @ p["cq"], heard @ p["ck"], heard @ p["cv"], heads) @ p["co"])
        return x + feed(p, x)

    def loss(params: Any, sound: jax.Array, words: jax.Array, raw: jax.Array) -> jax.Array:
        keys = jax.random.split(jax.random.wrap_key_data(raw, impl="rbg"), 6)
        x = jax.nn.gelu(conv(jax.nn.gelu(conv(sound, params["c1"])), params["c2"], 2)).swapaxes(1, 2)
        for i, p in enumerate(params["encoder"]):
            x = run(f"audio/layer{i}", listen, p, x, keys[i])
        y = params["embed"][words[:, :-1]]
        for i, p in enumerate(params["decoder"]):
            y = run(f"text/layer{i}", write, p, y, x, keys[3 + i])
        return log_loss(y @ params["embed"].T, words[:, 1:])

    def step(params: Any, state: Any, sound: jax.Array, words: jax.Array, raw: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, sound, words, raw)
        return value, *adam(params, grads, state)

    square = shape(width, width)
    entry = {name: square for name in ("q", "k", "v", "o")} | {"up": matrix(width, 256), "down": matrix(256, width)}
    entry |= {"n1": vectors(width), "n2": vectors(width)}
    crossed = entry | {name: square for name in ("cq", "ck", "cv", "co")} | {"n3": vectors(width)}
    params = {"c1": shape(width, 20, 3), "c2": shape(width, width, 3), "embed": shape(160, width)}
    params |= {"encoder": [entry] * 3, "decoder": [crossed] * 3}
    arguments = (params, adam_state(params), shape(6, 20, 240), integers(6, 49), shape(4, dtype=jnp.uint32))
    return UnseenStep(step, arguments, donate=(0, 1))


def axial_einsum(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains attention along rows and columns of a grid, written entirely with einsums."""
    run = Blocks(checkpoint, scopes)

    def rows(p: Any, x: jax.Array) -> jax.Array:
        q, k, v = (jnp.einsum("bijc,chd->bijhd", x, w) for w in p["qkv"])
        weights = jax.nn.softmax(jnp.einsum("bijhd,bikhd->bhijk", q, k), axis=-1)
        return jnp.einsum("bhijk,bikhd,hdc->bijc", weights, v, p["out"])

    def block(p: Any, x: jax.Array) -> jax.Array:
        x = x + rows(p["row"], layer_norm(p["n1"], x))
        x = x + rows(p["column"], layer_norm(p["n2"], x).swapaxes(1, 2)).swapaxes(1, 2)
        y = layer_norm(p["n3"], x)
        a, b = jax.nn.sigmoid(y @ p["a"]), y @ p["b"]
        return x + jnp.einsum("bikc,bjkc,cd->bijd", a, b, p["c"]) / x.shape[1]

    def loss(params: Any, grid: jax.Array, labels: jax.Array) -> jax.Array:
        x = affine(params["lift"], grid)
        for i, p in enumerate(params["layers"]):
            x = run(f"evoformer_{i}", block, p, x)
        return log_loss(affine(params["head"], 0.5 * (x + x.swapaxes(1, 2))), labels)

    axis = {"qkv": [shape(32, 2, 16)] * 3, "out": shape(2, 16, 32)}
    entry = {"row": axis, "column": axis, "n1": vectors(32), "n2": vectors(32), "n3": vectors(32)}
    entry |= {name: shape(32, 32) for name in ("a", "b", "c")}
    params = {"lift": matrix(6, 32), "layers": [entry] * 4, "head": matrix(32, 32)}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(2, 40, 40, 6), integers(2, 40, 40)))


STEPS = {
    "gpt_private_gelu": gpt_private_gelu,
    "parallel_bf16": parallel_bf16,
    "window_vit": window_vit,
    "speech_to_text": speech_to_text,
    "axial_einsum": axial_einsum,
}
