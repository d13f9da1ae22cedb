"""Steps on text, signals and sets: segment memory, scans over time, a tree, optimal transport, and contrast."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

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
from recompute.benchmarks.unseen.step_parts import (
    Blocks,
    Builder,
    UnseenStep,
    adam,
    adam_state,
    integers,
    momentum,
    sgd,
    shape,
)


def memory_segments(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains on two text segments, where layers also attend to the previous segment's inputs."""
    run = Blocks(checkpoint, scopes)
    mask = jnp.tril(jnp.ones((64, 128)), 64)

    def layer(p: Any, x: jax.Array, past: jax.Array) -> jax.Array:
        both = layer_norm(jnp.concatenate([past, x], axis=1), **p["norm"])
        q, k, v = (
            split_heads(dense(p[name], part), 4) for name, part in (("q", both[:, 64:]), ("k", both), ("v", both))
        )
        x = x + attend(q, k, v, mask)
        return x + dense(p["down"], jax.nn.gelu(dense(p["up"], x)))

    def loss(params: Any, memory: Any, tokens: jax.Array) -> Any:
        total, kept = jnp.zeros(()), list(memory)
        for part in range(2):
            words = tokens[:, part * 64 : part * 64 + 65]
            x = params["words"][words[:, :-1]]
            for i in range(3):
                old, kept[i] = kept[i], lax.stop_gradient(x)
                x = run(f"segment{part}/layer{i}", layer, params[f"layer{i}"], x, old)
            total = total + cross_entropy(x @ params["words"].T, words[:, 1:])
        return total, kept

    def step(params: Any, state: Any, memory: Any, tokens: jax.Array) -> Any:
        (value, memory), grads = jax.value_and_grad(loss, has_aux=True)(params, memory, tokens)
        return value, memory, *adam(params, grads, state)

    block = {name: linear(64, 64) for name in "qkv"} | {
        "up": linear(64, 256),
        "down": linear(256, 64),
        "norm": normed(64),
    }
    params = {f"layer{i}": block for i in range(3)} | {"words": shape(500, 64)}
    memory = [shape(8, 64, 64)] * 3
    return UnseenStep(step, (params, adam_state(params), memory, integers(8, 129)), donate=(0, 1, 2))


def mixture_rnn(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a GRU in a `lax.scan`. The output of the GRU is a mixture of twenty Gaussians."""
    run = Blocks(checkpoint, scopes)

    def cell(p: Any, h: jax.Array, x: jax.Array) -> jax.Array:
        both = jnp.concatenate([h, x], axis=-1)
        z, r = jnp.split(jax.nn.sigmoid(dense(p["gates"], both)), 2, axis=-1)
        return (1 - z) * h + z * jnp.tanh(dense(p["new"], jnp.concatenate([r * h, x], axis=-1)))

    def mixture(p: Any, h: jax.Array, y: jax.Array) -> jax.Array:
        weight, mx, my, sx, sy = jnp.split(dense(p["out"], h), 5, axis=-1)
        far = ((y[..., :1] - mx) * jnp.exp(-sx)) ** 2 + ((y[..., 1:] - my) * jnp.exp(-sy)) ** 2
        return jax.nn.logsumexp(jax.nn.log_softmax(weight) - far / 2 - sx - sy, axis=-1)

    def loss(params: Any, strokes: jax.Array) -> jax.Array:
        def advance(h: jax.Array, pair: Any) -> Any:
            h = run("cell", cell, params, h, pair[0])
            return h, run("mixture", mixture, params, h, pair[1])

        _, scores = lax.scan(advance, jnp.zeros((strokes.shape[1], 96)), (strokes[:-1], strokes[1:]))
        return -jnp.mean(scores)

    def step(params: Any, velocity: Any, strokes: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, strokes)
        return value, momentum(params, grads, velocity)

    params = {"gates": linear(98, 192), "new": linear(98, 96), "out": linear(96, 100)}
    return UnseenStep(step, (params, params, shape(61, 128, 2)), donate=(0, 1))


def random_field(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a conditional random field, and computes its partition function in a `lax.scan`."""
    run = Blocks(checkpoint, scopes)

    def emit(w: jax.Array, x: jax.Array, dilation: int) -> jax.Array:
        numbers = ("NWC", "WIO", "NWC")
        return x + jnp.tanh(
            lax.conv_general_dilated(x, w, (1,), "SAME", rhs_dilation=(dilation,), dimension_numbers=numbers)
        )

    def forward(change: jax.Array, alpha: jax.Array, score: jax.Array) -> jax.Array:
        return jax.nn.logsumexp(alpha[:, :, None] + change, axis=1) + score

    def loss(params: Any, x: jax.Array, tags: jax.Array) -> jax.Array:
        for i, kernel in enumerate(params["kernels"]):
            x = run(f"emit{i}", lambda w, x, i=i: emit(w, x, 2**i), kernel, x)
        scores = dense(params["out"], x)
        change = params["change"]

        def advance(alpha: jax.Array, score: jax.Array) -> Any:
            return run("forward", forward, change, alpha, score), None

        alpha, _ = lax.scan(advance, scores[:, 0], scores[:, 1:].swapaxes(0, 1))
        gold = jnp.take_along_axis(scores, tags[..., None], axis=-1).sum((1, 2)) + change[
            tags[:, :-1], tags[:, 1:]
        ].sum(1)
        return jnp.mean(jax.nn.logsumexp(alpha, axis=-1) - gold)

    def step(params: Any, x: jax.Array, tags: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, tags)
        return value, sgd(params, grads)

    params = {"kernels": [shape(3, 64, 64)] * 5, "out": linear(64, 32), "change": shape(32, 32)}
    return UnseenStep(step, (params, shape(32, 48, 64), integers(32, 48)), donate=(0,))


def tree_sums(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a recursive network over a balanced tree. Each level of the tree merges pairs of
    cells."""
    run = Blocks(checkpoint, scopes)

    def join(p: Any, h: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
        pairs = h.reshape(h.shape[0], -1, 2 * h.shape[-1])
        i, left, right, o, u = jnp.split(dense(p, pairs), 5, axis=-1)
        entry, two = c[:, 0::2], c[:, 1::2]
        c = jax.nn.sigmoid(i) * jnp.tanh(u) + jax.nn.sigmoid(left) * entry + jax.nn.sigmoid(right) * two
        return jax.nn.sigmoid(o) * jnp.tanh(c), c

    def loss(params: Any, leaves: jax.Array, labels: jax.Array) -> jax.Array:
        h, c = jnp.split(jnp.tanh(dense(params["leaf"], params["words"][leaves])), 2, axis=-1)
        total = jnp.zeros(())
        for level in range(7):
            h, c = run(f"level{level}", join, params["join"], h, c)
            total = total + cross_entropy(dense(params["head"], h.mean(1)), labels % 5)
        return total

    def step(params: Any, leaves: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, leaves, labels)
        return value, sgd(params, grads)

    params = {"words": shape(300, 64), "leaf": linear(64, 128), "join": linear(128, 320), "head": linear(64, 5)}
    return UnseenStep(step, (params, integers(64, 128), integers(64)), donate=(0,))


def sinkhorn(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step whose loss is the optimal transport of two point clouds, in twelve Sinkhorn rounds."""
    run = Blocks(checkpoint, scopes)

    def embed(p: Any, x: jax.Array) -> jax.Array:
        return dense(p["second"], jax.nn.relu(dense(p["first"], x)))

    def scale(cost: jax.Array, f: jax.Array, g: jax.Array) -> tuple[jax.Array, jax.Array]:
        f = -jax.nn.logsumexp(g[:, None, :] - cost, axis=2)
        return f, -jax.nn.logsumexp(f[:, :, None] - cost, axis=1)

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        a, b = run("embed_x", embed, params, x), run("embed_y", embed, params, y)
        cost = jnp.sum((a[:, :, None] - b[:, None, :]) ** 2, axis=-1)
        f, g = jnp.zeros(cost.shape[:2]), jnp.zeros((cost.shape[0], cost.shape[2]))
        for turn in range(12):
            f, g = run(f"round{turn}", scale, cost, f, g)
        return jnp.mean(jnp.exp(f[:, :, None] + g[:, None, :] - cost) * cost)

    def step(params: Any, state: Any, x: jax.Array, y: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return value, *adam(params, grads, state)

    params = {"first": linear(3, 64), "second": linear(64, 16)}
    return UnseenStep(step, (params, adam_state(params), shape(4, 160, 3), shape(4, 192, 3)), donate=(0, 1))


def large_contrast(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains momentum contrast, with an averaged key encoder and a queue of 4096 negatives."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        return x + dense(p["down"], jax.nn.gelu(dense(p["up"], rms_norm(x, p["scale"]))))

    def encode(params: Any, x: jax.Array, subject: str) -> jax.Array:
        for i, p in enumerate(params):
            x = run(f"{subject}{i}", block, p, x)
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def contrast(q: jax.Array, k: jax.Array, queue: jax.Array) -> jax.Array:
        logits = jnp.concatenate([jnp.sum(q * k, -1, keepdims=True), q @ queue.T], axis=-1) / 0.07
        return -jax.nn.log_softmax(logits)[:, 0].mean()

    def loss(params: Any, slow: Any, queue: jax.Array, x: jax.Array, y: jax.Array) -> Any:
        q, k = encode(params, x, "query"), lax.stop_gradient(encode(slow, y, "key"))
        return run("contrast", contrast, q, k, queue), k

    def step(params: Any, slow: Any, velocity: Any, queue: jax.Array, x: jax.Array, y: jax.Array) -> Any:
        (value, k), grads = jax.value_and_grad(loss, has_aux=True)(params, slow, queue, x, y)
        params, velocity = momentum(params, grads, velocity)
        slow = jax.tree.map(lambda s, p: 0.99 * s + 0.01 * p, slow, params)
        return value, params, slow, velocity, jnp.concatenate([k, queue[: -k.shape[0]]])

    params = [{"up": linear(64, 192), "down": linear(192, 64), "scale": shape(64)}] * 4
    arguments = (params, params, params, shape(4096, 64), shape(512, 64), shape(512, 64))
    return UnseenStep(step, arguments, donate=(0, 1, 2, 3))


STEPS: dict[str, Builder] = {
    step.__name__: step for step in (memory_segments, mixture_rnn, random_field, tree_sums, sinkhorn, large_contrast)
}
