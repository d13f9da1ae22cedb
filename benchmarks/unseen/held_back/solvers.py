"""Steps with filters, unrolled solvers, graphs and sorting."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.held_back.layers import affine, layer_norm, log_loss, matrix, vectors
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, sgd, shape


def kalman_filter(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains the transition of a Kalman filter through ten unrolled updates."""
    run = Blocks(checkpoint, scopes)
    size = 6

    def update(p: Any, mean: jax.Array, spread: jax.Array, seen: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        move = jnp.eye(size) + p["linear"]
        mean = mean @ move.T + affine(p["out"], jnp.tanh(affine(p["in"], mean)))
        noise = jnp.diag(jax.nn.softplus(p["noise"]))
        spread = jnp.einsum("ij,bjk,lk->bil", move, spread, move) + noise
        column = jnp.einsum("bij,j->bi", spread, p["look"])
        scatter = column @ p["look"] + jax.nn.softplus(p["error"])
        surprise = seen - mean @ p["look"]
        gain = column / scatter[:, None]
        spread = spread - gain[:, :, None] * column[:, None, :]
        return mean + gain * surprise[:, None], spread, 0.5 * jnp.mean(surprise**2 / scatter + jnp.log(scatter))

    def loss(params: Any, signal: jax.Array) -> Any:
        mean, total = jnp.zeros((signal.shape[1], size)), 0.0
        spread = jnp.broadcast_to(jnp.eye(size), (signal.shape[1], size, size))
        for t in range(10):
            mean, spread, cost = run(f"kalman/t{t}", update, params, mean, spread, signal[t])
            total = total + cost
        return total / 10

    params = {"linear": shape(size, size), "in": matrix(size, 48), "out": matrix(48, size)}
    params |= {"noise": shape(size), "look": shape(size), "error": shape()}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(10, 3000)))


def unrolled_shrinkage(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains nine unrolled iterations of a sparse coder with shared weights."""
    run = Blocks(checkpoint, scopes)

    def iterate(
        p: Any, threshold: jax.Array, z: jax.Array, before: jax.Array, x: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        y = z + 0.3 * (z - before)
        y = y - (y @ p["dictionary"] - x) @ p["analysis"]
        height = jax.nn.softplus(threshold)
        return jnp.sign(y) * jnp.maximum(jnp.abs(y) - height, 0.0), z

    def loss(params: Any, x: jax.Array) -> jax.Array:
        before = z = x @ params["shared"]["analysis"]
        for i, threshold in enumerate(params["thresholds"]):
            z, before = run(f"lista_{i}", iterate, params["shared"], threshold, z, before, x)
        return jnp.mean((z @ params["shared"]["dictionary"] - x) ** 2) + 0.01 * jnp.mean(jnp.abs(z))

    def step(params: Any, x: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x)
        return value, sgd(params, grads)

    params = {"shared": {"dictionary": shape(160, 64), "analysis": shape(64, 160)}, "thresholds": [shape(160)] * 9}
    return UnseenStep(step, (params, shape(1500, 64)))


def graph_attention(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains graph attention with `segment_max`, scatters, and a root with a `custom_jvp`."""
    run = Blocks(checkpoint, scopes)
    nodes, heads = 400, 4

    @jax.custom_jvp
    def root(x: jax.Array) -> jax.Array:
        return jnp.sqrt(x)

    @root.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        y = jnp.sqrt(primals[0])
        return y, 0.5 * tangents[0] / jnp.maximum(y, 1e-3)

    def block(p: Any, h: jax.Array, place: jax.Array, sources: jax.Array, targets: jax.Array) -> jax.Array:
        key, value = jnp.split((h @ p["both"]).reshape(nodes, heads, -1), 2, axis=-1)
        far = root(jnp.sum((place[sources] - place[targets]) ** 2, axis=-1, keepdims=True))
        score = jnp.einsum("ehd,hd->eh", jnp.tanh(key[sources] + key[targets]), p["query"]) - far * p["reach"]
        top = jax.ops.segment_max(score, targets, num_segments=nodes)
        weight = jnp.exp(score - jax.lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0.0))[targets])
        total = jnp.zeros((nodes, heads)).at[targets].add(weight)
        mixed = jnp.zeros_like(value).at[targets].add(weight[..., None] * value[sources])
        return layer_norm(p["norm"], h + jax.nn.elu(mixed / (total[..., None] + 1e-6)).reshape(h.shape))

    def loss(params: Any, h: jax.Array, place: jax.Array, edges: Any, labels: jax.Array) -> jax.Array:
        for i, p in enumerate(params["layers"]):
            h = run(f"GATConv_{i}", block, p, h, place, *edges)
        return log_loss(affine(params["head"], h), labels)

    def step(params: Any, state: Any, *batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, *batch)
        return value, *adam(params, grads, state)

    entry = {"both": shape(48, 96), "query": shape(heads, 12), "reach": shape(heads), "norm": vectors(48)}
    params = {"layers": [entry] * 4, "head": matrix(48, 32)}
    batch = (shape(nodes, 48), shape(nodes, 3), (integers(5000), integers(5000)), integers(nodes))
    return UnseenStep(step, (params, adam_state(params), *batch), donate=(0, 1))


def sorted_sets(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains on sets, which are sorted per channel and weighted by rank."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        order = jnp.argsort(x, axis=1)
        ranked = jnp.take_along_axis(x, order, axis=1)
        pooled = jnp.einsum("bnc,nc->bc", ranked, p["ranks"])
        largest = jnp.sort(x, axis=1)[:, -4:].mean(axis=1)
        joined = jnp.concatenate([pooled, largest], axis=-1)
        return x + jax.nn.gelu(affine(p["each"], x) + affine(p["all"], joined)[:, None])

    def loss(params: Any, x: jax.Array, expected: jax.Array) -> jax.Array:
        x = affine(params["lift"], x)
        for i, p in enumerate(params["layers"]):
            x = run(f"fspool/{i}", block, p, x)
        made = affine(params["drop"], x)[..., 0]
        return jnp.mean(jnp.abs(jnp.sort(made, axis=1) - jnp.sort(expected, axis=1)))

    entry = {"ranks": shape(64, 32), "each": matrix(32, 32), "all": matrix(64, 32)}
    params = {"lift": matrix(2, 32), "layers": [entry] * 5, "drop": matrix(32, 1)}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(64, 64, 2), shape(64, 64)))


def leapfrog_network(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that learns the wave speed of a medium through twelve leapfrog steps on a grid."""
    run = Blocks(checkpoint, scopes)

    def leap(speed: jax.Array, now: jax.Array, before: jax.Array, source: jax.Array) -> tuple[jax.Array, jax.Array]:
        around = sum(jnp.roll(now, shift, axis) for axis in (1, 2) for shift in (1, -1)) - 4.0 * now
        damped = 0.99 * (now - before)
        then = now + damped + jax.nn.sigmoid(speed) * 0.4 * around + source * jnp.exp(-jnp.square(now))
        return then, now

    def loss(speed: jax.Array, source: jax.Array, heard: jax.Array) -> jax.Array:
        now = before = jnp.zeros_like(source)
        total = jnp.zeros(())
        for t in range(12):
            now, before = run(f"leap{t:02d}", leap, speed, now, before, source * (t < 3))
            total = total + jnp.mean((now[:, 0] - heard[t]) ** 2)
        return total

    def step(speed: jax.Array, source: jax.Array, heard: jax.Array) -> Any:
        value, slope = jax.value_and_grad(loss)(speed, source, heard)
        return value, speed - 0.1 * slope / (jnp.max(jnp.abs(slope)) + 1e-6)

    return UnseenStep(step, (shape(160, 160), shape(4, 160, 160), shape(12, 4, 160)), donate=(0,))


STEPS = {
    "kalman_filter": kalman_filter,
    "unrolled_shrinkage": unrolled_shrinkage,
    "graph_attention": graph_attention,
    "sorted_sets": sorted_sets,
    "leapfrog_network": leapfrog_network,
}
