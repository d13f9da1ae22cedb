"""Steps on relations: nested derivatives, graphs, all pairs of a batch, and generated weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.open.open_layers import dense, layer_norm, linear, normed
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, integers, momentum, sgd, shape


def learned_start(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that differentiates through two steps on each of three tasks from a shared start (MAML)."""
    run = Blocks(checkpoint, scopes)

    def layer(p: Any, x: jax.Array) -> jax.Array:
        return x + dense(p["down"], jnp.tanh(dense(p["up"], x)))

    def error(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        for p in params:
            x = layer(p, x)
        return jnp.mean((x - y) ** 2)

    def adapt(params: Any, x: jax.Array, y: jax.Array) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(error)(params, x, y))

    def loss(params: Any, tasks: Any) -> jax.Array:
        total = jnp.zeros(())
        for i, (seen, requested) in enumerate(tasks):
            fast = run(f"task{i}/first", adapt, params, *seen)
            fast = run(f"task{i}/second", adapt, fast, *seen)
            total += run(f"task{i}/asked", error, fast, *requested)
        return total / len(tasks)

    def step(params: Any, velocity: Any, tasks: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, tasks)
        return value, momentum(params, grads, velocity)

    params = [{"up": linear(32, 96), "down": linear(96, 32)}] * 3
    pair = (shape(512, 32), shape(512, 32))
    return UnseenStep(step, (params, params, [(pair, pair)] * 3))


def heat_residual(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a network for the heat equation, with derivatives in Taylor mode."""
    run = Blocks(checkpoint, scopes)

    def layer(p: Any, triple: Any) -> Any:
        value, first, second = (x @ p["w"] for x in triple)
        value = value + p["b"]
        s, c = jnp.sin(value), jnp.cos(value)
        return s, c * first, c * second - s * first * first

    def loss(params: Any, places: jax.Array, start: jax.Array) -> jax.Array:
        along = jnp.broadcast_to(jnp.array([1.0, 0.0]), places.shape)
        later = jnp.broadcast_to(jnp.array([0.0, 1.0]), places.shape)
        both = [(places, along, jnp.zeros_like(places)), (places, later, jnp.zeros_like(places))]
        for i, p in enumerate(params["layers"]):
            both = [run(f"layer{i}", layer, p, entry) for entry in both]
        (u, _, curved), (_, rate, _) = both
        residual = (rate - 0.1 * curved) @ params["head"]
        return jnp.mean(residual**2) + jnp.mean((u @ params["head"] - start) ** 2)

    def step(params: Any, places: jax.Array, start: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, places, start)
        return value, sgd(params, grads)

    layers = [{"w": shape(2, 48), "b": shape(48)}] + [{"w": shape(48, 48), "b": shape(48)}] * 5
    return UnseenStep(step, ({"layers": layers, "head": shape(48, 1)}, shape(1024, 2), shape(1024, 1)))


def edge_network(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a graph network with states for nodes, for edges and for the graph."""
    run, nodes = Blocks(checkpoint, scopes), 256

    def mlp(p: Any, *parts: jax.Array) -> jax.Array:
        return layer_norm(dense(p["second"], jax.nn.relu(dense(p["first"], jnp.concatenate(parts, -1)))), **p["norm"])

    def layer(p: Any, x: jax.Array, e: jax.Array, g: jax.Array, ends: jax.Array) -> Any:
        whole = jnp.broadcast_to(g, (len(e), g.shape[-1]))
        e = e + mlp(p["edge"], e, x[ends[0]], x[ends[1]], whole)
        total = jax.ops.segment_sum(e, ends[1], nodes)
        most = jax.nn.relu(jax.ops.segment_max(e, ends[1], nodes))
        x = x + mlp(p["node"], x, total, most)
        return x, e, g + mlp(p["graph"], g, x.mean(0, keepdims=True), e.mean(0, keepdims=True))

    def loss(params: Any, x: jax.Array, e: jax.Array, ends: jax.Array, y: jax.Array) -> jax.Array:
        g = jnp.zeros((1, 24))
        for i, p in enumerate(params["layers"]):
            x, e, g = run(f"round{i}", layer, p, x, e, g, ends)
        return jnp.mean((dense(params["head"], x) + dense(params["all"], g) - y) ** 2)

    def step(params: Any, x: jax.Array, e: jax.Array, ends: jax.Array, y: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, e, ends, y)
        return value, sgd(params, grads)

    def small(width: int) -> Any:
        return {"first": linear(width, 64), "second": linear(64, 24), "norm": normed(24)}

    layers = [{"edge": small(96), "node": small(72), "graph": small(72)}] * 4
    params = {"layers": layers, "head": linear(24, 1), "all": linear(24, 1)}
    return UnseenStep(step, (params, shape(nodes, 24), shape(2048, 24), integers(2, 2048), shape(nodes, 1)))


def pairs_of_all(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step with a contrastive loss over all pairs of a batch. The logits are the largest residual."""
    run = Blocks(checkpoint, scopes)

    def tower(params: Any, name: str, x: jax.Array) -> jax.Array:
        for i, p in enumerate(params):
            x = run(f"{name}{i}", lambda p, x: x + dense(p["down"], jax.nn.gelu(dense(p["up"], x))), p, x)
        return x * jax.lax.rsqrt(jnp.sum(x * x, -1, keepdims=True) + 1e-6)

    def contrast(scale: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
        logits = jnp.exp(scale) * a @ b.T
        across = jax.nn.log_softmax(logits, 1) + jax.nn.log_softmax(logits, 0)
        return -jnp.mean(jnp.diagonal(across)) + 1e-4 * jnp.mean(jax.nn.logsumexp(logits, 1) ** 2)

    def loss(params: Any, a: jax.Array, b: jax.Array) -> jax.Array:
        return run("contrast", contrast, params["scale"], tower(params["a"], "a", a), tower(params["b"], "b", b))

    def step(params: Any, a: jax.Array, b: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, a, b)
        return value, sgd(params, grads)

    layers = [{"up": linear(48, 96), "down": linear(96, 48)}] * 2
    return UnseenStep(step, ({"a": layers, "b": layers, "scale": shape()}, shape(1024, 48), shape(1024, 48)))


def written_weights(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a hypernetwork, whose outputs are the weights of another network."""
    run = Blocks(checkpoint, scopes)

    def write(p: Any, code: jax.Array) -> Any:
        h = jnp.tanh(dense(p["first"], code))
        return dense(p["up"], h).reshape(-1, 32, 64) / 8, dense(p["down"], h).reshape(-1, 64, 32) / 8

    def read(up: jax.Array, down: jax.Array, x: jax.Array) -> jax.Array:
        return x + jnp.einsum("bnh,bhc->bnc", jnp.sin(jnp.einsum("bnc,bch->bnh", x, up)), down)

    def loss(params: Any, seen: jax.Array, left: jax.Array, right: jax.Array, near: jax.Array) -> jax.Array:
        code = jnp.mean(jax.nn.relu(dense(params["look"], seen)), 1)
        for i, p in enumerate(params["writers"]):
            up, down = run(f"write{i}", write, p, code)
            left, right = (run(f"read{i}", read, up, down, x) for x in (left, right))
        apart = jnp.sqrt(jnp.sum((left - right) ** 2, -1) + 1e-6)
        return jnp.mean(near * apart**2 + (1 - near) * jax.nn.relu(1 - apart) ** 2)

    def step(params: Any, *batch: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, *batch)
        return value, sgd(params, grads)

    writers = [{"first": linear(32, 48), "up": linear(48, 2048), "down": linear(48, 2048)}] * 4
    batch = (shape(16, 64, 16), shape(16, 128, 32), shape(16, 128, 32), shape(16, 128))
    return UnseenStep(step, ({"look": linear(16, 32), "writers": writers}, *batch))


def fixed_point(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains one block through twelve damped iterations that also read the previous state."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, z: jax.Array, x: jax.Array) -> jax.Array:
        mixed = jnp.einsum("bnc,nm->bmc", jax.nn.softplus(z), p["places"]) + x
        return layer_norm(mixed + jax.nn.silu(mixed @ p["w"]), **p["norm"])

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        before = z = jnp.zeros_like(x)
        for i in range(12):
            fresh = run(f"iteration{i}", block, params["block"], z, x)
            before, z = z, 0.6 * fresh + 0.3 * z + 0.1 * before
        return jnp.mean((z @ params["head"] - y) ** 2) + 0.01 * jnp.mean((z - before) ** 2)

    def step(params: Any, x: jax.Array, y: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return value, sgd(params, grads)

    params = {"block": {"places": shape(64, 64), "w": shape(48, 48), "norm": normed(48)}, "head": shape(48, 4)}
    return UnseenStep(step, (params, shape(32, 64, 48), shape(32, 64, 4)))


STEPS = {
    "learned_start": learned_start,
    "heat_residual": heat_residual,
    "edge_network": edge_network,
    "pairs_of_all": pairs_of_all,
    "written_weights": written_weights,
    "fixed_point": fixed_point,
}
