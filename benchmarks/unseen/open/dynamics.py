"""Steps with an equilibrium model, an ODE solver, a graph, and a point cloud."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from recompute.benchmarks.unseen.open.open_layers import batch_norm, cross_entropy, dense, layer_norm, linear, normed
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, momentum, shape


def deep_equilibrium(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a layer through twelve unrolled iterations towards its fixed point."""
    run = Blocks(checkpoint, scopes)

    def iterate(p: Any, z: jax.Array, x: jax.Array) -> jax.Array:
        y = layer_norm(jax.nn.relu(dense(p["first"], z)), **p["n1"])
        return layer_norm(jax.nn.relu(z + layer_norm(x + dense(p["second"], y), **p["n2"])), **p["n3"])

    def loss(params: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        x = dense(params["inject"], x)
        z = jnp.zeros_like(x)
        for i in range(12):
            z = run(f"solver/iteration_{i}", iterate, params["cell"], z, x)
        return jnp.mean((dense(params["head"], z) - target) ** 2)

    def step(params: Any, velocity: Any, x: jax.Array, target: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, target)
        return value, momentum(params, grads, velocity)

    cell = {"first": linear(64, 96), "second": linear(96, 64), "n1": normed(96), "n2": normed(64), "n3": normed(64)}
    params = {"inject": linear(20, 64), "cell": cell, "head": linear(64, 4)}
    return UnseenStep(step, (params, params, shape(1024, 20), shape(1024, 4)), donate=(0, 1))


def neural_ode_rk4(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a neural ODE with eight Runge-Kutta steps of a jitted vector field."""
    run = Blocks(checkpoint, scopes)

    @jax.jit
    def field(p: Any, t: jax.Array, y: jax.Array) -> jax.Array:
        hidden = jnp.tanh(dense(p["first"], y) + t * p["time"])
        return dense(p["third"], jnp.tanh(dense(p["second"], hidden)))

    def advance(p: Any, t: jax.Array, y: jax.Array) -> jax.Array:
        h = 0.125
        k1 = field(p, t, y)
        k2 = field(p, t + h / 2, y + h / 2 * k1)
        k3 = field(p, t + h / 2, y + h / 2 * k2)
        k4 = field(p, t + h, y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def loss(params: Any, start: jax.Array, path: jax.Array) -> jax.Array:
        y, total = start, jnp.zeros(())
        for i in range(8):
            y = run(f"rk4_step{i}", advance, params, jnp.float32(i / 8), y)
            total = total + jnp.mean((y - path[i]) ** 2)
        return total

    def step(params: Any, state: Any, start: jax.Array, path: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, start, path)
        return value, *adam(params, grads, state)

    params = {"first": linear(6, 64), "time": shape(64), "second": linear(64, 64), "third": linear(64, 6)}
    return UnseenStep(step, (params, adam_state(params), shape(1024, 6), shape(8, 1024, 6)))


def graph_messages(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a graph network, which aggregates messages with `segment_sum`."""
    run = Blocks(checkpoint, scopes)
    nodes = 512

    def block(p: Any, v: jax.Array, e: jax.Array, ends: jax.Array) -> tuple[jax.Array, jax.Array]:
        sender, receiver = ends[0], ends[1]
        joined = jnp.concatenate([v[sender], v[receiver], e], axis=-1)
        e = e + dense(p["edge_out"], jax.nn.relu(dense(p["edge_in"], joined)))
        total = jax.ops.segment_sum(e, receiver, num_segments=nodes)
        degree = jax.ops.segment_sum(jnp.ones(e.shape[0]), receiver, num_segments=nodes)
        heard = total / jnp.maximum(degree, 1.0)[:, None]
        return layer_norm(v + dense(p["node"], jnp.concatenate([v, heard], axis=-1)), **p["norm"]), e

    def loss(params: Any, v: jax.Array, e: jax.Array, ends: jax.Array, labels: jax.Array) -> jax.Array:
        for i, p in enumerate(params["blocks"]):
            v, e = run(f"processor/message_passing_{i}", block, p, v, e, ends)
        return cross_entropy(dense(params["head"], v), labels)

    entry = {"edge_in": linear(96, 64), "edge_out": linear(64, 32), "node": linear(64, 32), "norm": normed(32)}
    arguments = (shape(nodes, 32), shape(4096, 32), integers(2, 4096), integers(nodes))
    return UnseenStep(jax.value_and_grad(loss), ({"blocks": [entry] * 5, "head": linear(32, 32)}, *arguments))


def point_cloud_topk(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a point-cloud network, whose blocks find nearest neighbours with `top_k`."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        square = jnp.sum(x * x, axis=-1)
        distance = square[:, :, None] + square[:, None, :] - 2 * jnp.einsum("bnd,bmd->bnm", x, x)
        _, near = lax.top_k(lax.stop_gradient(-distance), 8)
        neighbours = jax.vmap(lambda points, index: points[index])(x, near)
        middle = jnp.broadcast_to(x[:, :, None, :], neighbours.shape)
        edges = dense(p["edge"], jnp.concatenate([middle, neighbours - middle], axis=-1))
        return jax.nn.leaky_relu(batch_norm(edges, **p["norm"]), 0.2).max(axis=2)

    def loss(params: Any, points: jax.Array, labels: jax.Array) -> jax.Array:
        x, seen = points, []
        for i, p in enumerate(params["blocks"], 1):
            x = run(f"edge_conv{i}", block, p, x)
            seen.append(x)
        return cross_entropy(dense(params["head"], jnp.concatenate(seen, axis=-1).max(axis=1)), labels)

    sizes = [(3, 24), (24, 24), (24, 32), (32, 48)]
    params = {"blocks": [{"edge": linear(2 * a, b), "norm": normed(b)} for a, b in sizes], "head": linear(128, 32)}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(4, 256, 3), integers(4)))


STEPS = {
    "deep_equilibrium": deep_equilibrium,
    "neural_ode_rk4": neural_ode_rk4,
    "graph_messages": graph_messages,
    "point_cloud_topk": point_cloud_topk,
}
