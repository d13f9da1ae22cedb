"""Steps on sequences: Transformer-XL, a mixture density RNN, long convolutions, and accumulated adapters."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.open.open_layers import dense, layer_norm, linear, normed
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, sgd, shape


def transformer_xl(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains Transformer-XL, and returns the memory that the next segment's layers attend to."""
    run, heads = Blocks(checkpoint, scopes), 4

    def layer(p: Any, x: jax.Array, memory: jax.Array) -> jax.Array:
        both = layer_norm(jnp.concatenate([jax.lax.stop_gradient(memory), x], 1), **p["norm"])
        batch, long, width = both.shape
        n = x.shape[1]
        q = (both[:, -n:] @ p["q"]).reshape(batch, n, heads, -1)
        k, v = (part.reshape(batch, long, heads, -1) for part in jnp.split(both @ p["kv"], 2, -1))
        content = jnp.einsum("bqhd,bkhd->bhqk", q + p["u"], k)
        place = jnp.einsum("bqhd,khd->bhqk", q + p["v"], p["places"])
        shifted = jnp.pad(place, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(batch, heads, long + 1, n)
        logits = (content + shifted[:, :, 1:].reshape(batch, heads, n, long)) * (width // heads) ** -0.5
        ahead = jnp.arange(long)[None] > jnp.arange(n)[:, None] + long - n
        weights = jax.nn.softmax(jnp.where(ahead, -1e30, logits))
        x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ p["o"]
        return x + dense(p["out"], jax.nn.relu(dense(p["in"], layer_norm(x, **p["norm2"]))))

    def loss(params: Any, memories: Any, tokens: jax.Array) -> Any:
        x, after = params["table"][tokens], list[jax.Array]()
        for i, (p, memory) in enumerate(zip(params["layers"], memories, strict=True)):
            after.append(x)
            x = run(f"layer{i}", layer, p, x, memory)
        logits = x[:, :-1] @ params["table"].T
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1)), after

    def step(params: Any, memories: Any, tokens: jax.Array) -> Any:
        (value, memories), grads = jax.value_and_grad(loss, has_aux=True)(params, memories, tokens)
        return value, sgd(params, grads), memories

    vectors = {"q": shape(64, 64), "kv": shape(64, 128), "o": shape(64, 64), "u": shape(4, 16), "v": shape(4, 16)}
    feed = {"norm": normed(64), "norm2": normed(64), "in": linear(64, 192), "out": linear(192, 64)}
    layers = [{**vectors, **feed, "places": shape(192, 4, 16)}] * 4
    params = {"table": shape(256, 64), "layers": layers}
    return UnseenStep(step, (params, [shape(4, 96, 64)] * 4, integers(4, 96)), donate=(0, 1))


def mixture_scan(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a gated RNN in a `lax.scan`. The output of the RNN is a mixture of 20 Gaussians."""
    run = Blocks(checkpoint, scopes)

    def cell(p: Any, h: jax.Array, x: jax.Array) -> jax.Array:
        reset, update = jnp.split(jax.nn.sigmoid(x @ p["xg"] + h @ p["hg"]), 2, -1)
        fresh = jnp.tanh(x @ p["xc"] + (reset * h) @ p["hc"])
        return (1 - update) * h + update * fresh

    def loss(params: Any, strokes: jax.Array) -> jax.Array:
        def word(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            h = run("cell", cell, params["cell"], h, x)
            return h, h

        _, hidden = jax.lax.scan(word, jnp.zeros((strokes.shape[1], 96)), strokes[:-1])
        weights, mean, log_scale = jnp.split(dense(params["head"], hidden), [20, 60], -1)
        mean, log_scale = mean.reshape(*mean.shape[:-1], 20, 2), log_scale.reshape(*mean.shape[:-1], 20, 2)
        away = (strokes[1:, :, None] - mean) * jnp.exp(-log_scale)
        each = jax.nn.log_softmax(weights) - jnp.sum(0.5 * away**2 + log_scale, -1)
        return -jnp.mean(jax.nn.logsumexp(each, -1))

    def step(params: Any, strokes: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, strokes)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
        return value, sgd(params, jax.tree.map(lambda g: g / jnp.maximum(norm, 1.0), grads))

    gates = {"xg": shape(2, 192), "hg": shape(96, 192), "xc": shape(2, 96), "hc": shape(96, 96)}
    return UnseenStep(step, ({"cell": gates, "head": linear(96, 100)}, shape(129, 32, 2)))


def long_filters(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains gated convolutions with filters as long as the sequence, applied by Fourier
    transforms."""
    run = Blocks(checkpoint, scopes)

    def layer(p: Any, x: jax.Array, places: jax.Array) -> jax.Array:
        n = x.shape[1]
        gate, value, again = jnp.split(layer_norm(x, **p["norm"]) @ p["in"], 3, -1)
        filters = jnp.sin(places @ p["f1"]) @ p["f2"] * jnp.exp(-jnp.abs(p["decay"]) * places[:, :1])
        mixed = jnp.fft.irfft(jnp.fft.rfft(value * gate, 2 * n, 1) * jnp.fft.rfft(filters, 2 * n, 0), 2 * n, 1)
        return x + (again * mixed[:, :n]) @ p["out"]

    def loss(params: Any, places: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        for i, p in enumerate(params["layers"]):
            x = run(f"filter{i}", layer, p, x, places)
        return jnp.mean((x @ params["head"] - y) ** 2)

    def step(params: Any, state: Any, places: jax.Array, x: jax.Array, y: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, places, x, y)
        return value, *adam(params, grads, state)

    small = {"f1": shape(8, 16), "f2": shape(16, 32), "decay": shape(32)}
    layers = [{"norm": normed(32), "in": shape(32, 96), "out": shape(32, 32), **small}] * 5
    params = {"layers": layers, "head": shape(32, 1)}
    return UnseenStep(step, (params, adam_state(params), shape(512, 8), shape(8, 512, 32), shape(8, 512, 1)))


def lora_microbatches(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains low-rank adapters (LoRA), with gradients summed over microbatches in a `lax.scan`."""
    run = Blocks(checkpoint, scopes)

    def layer(frozen: Any, thin: Any, x: jax.Array) -> jax.Array:
        both = [frozen[k] + thin[k]["a"] @ thin[k]["b"] for k in ("up", "gate")]
        return x + (jax.nn.silu(x @ both[1]) * (x @ both[0])) @ frozen["down"]

    def loss(thin: Any, frozen: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        for i, (t, f) in enumerate(zip(thin, frozen, strict=True)):
            x = run(f"layer{i}", layer, f, t, x)
        return jnp.mean((x - y) ** 2)

    def step(thin: Any, state: Any, frozen: Any, x: jax.Array, y: jax.Array) -> Any:
        def part(total: Any, batch: Any) -> Any:
            value, grads = jax.value_and_grad(loss)(thin, frozen, *batch)
            return jax.tree.map(jnp.add, total, grads), value

        grads, values = jax.lax.scan(part, jax.tree.map(jnp.zeros_like, thin), (x, y))
        return values.mean(), *adam(thin, grads, state)

    pair = {"a": shape(64, 4), "b": shape(4, 256)}
    thin = [{"up": pair, "gate": pair}] * 5
    frozen = [{"up": shape(64, 256), "gate": shape(64, 256), "down": shape(256, 64)}] * 5
    return UnseenStep(step, (thin, adam_state(thin), frozen, shape(4, 512, 64), shape(4, 512, 64)))


STEPS = {
    "transformer_xl": transformer_xl,
    "mixture_scan": mixture_scan,
    "long_filters": long_filters,
    "lora_microbatches": lora_microbatches,
}
