"""Steps with nested gradients, simulated bodies, adapters over microbatches, and a shared layer."""

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
    split_heads,
)
from recompute.benchmarks.unseen.step_parts import (
    Blocks,
    Builder,
    UnseenStep,
    adam,
    adam_state,
    integers,
    key_data,
    sgd,
    shape,
)


def inner_steps(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that differentiates through two inner descent steps on eight tasks under `vmap` (MAML)."""
    run = Blocks(checkpoint, scopes)

    def network(params: Any, x: jax.Array) -> jax.Array:
        for p in params[:-1]:
            x = jnp.tanh(dense(p, x))
        return dense(params[-1], x)

    def inner(params: Any, x: jax.Array, y: jax.Array) -> Any:
        grads = jax.grad(lambda p: jnp.mean((network(p, x) - y) ** 2))(params)
        return sgd(params, grads, 0.1)

    def task(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        for turn in range(2):
            params = run(f"inner{turn}", inner, params, x[turn], y[turn])
        return run("outer", lambda p, x, y: jnp.mean((network(p, x) - y) ** 2), params, x[2], y[2])

    def step(params: Any, state: Any, x: jax.Array, y: jax.Array) -> Any:
        value, grads = jax.value_and_grad(lambda p: jax.vmap(task, (None, 0, 0))(p, x, y).mean())(params)
        return value, *adam(params, grads, state)

    params = [linear(2, 64), linear(64, 64), linear(64, 64), linear(64, 1)]
    return UnseenStep(step, (params, adam_state(params), shape(8, 3, 256, 2), shape(8, 3, 256, 1)), donate=(0, 1))


def wave_equation(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a network for the wave equation, with second derivatives by `jvp` of `jvp`."""
    run = Blocks(checkpoint, scopes)

    def network(params: Any, points: jax.Array) -> jax.Array:
        for i, p in enumerate(params[:-1]):
            points = run(f"sine{i}", lambda p, z: jnp.sin(dense(p, z)), p, points)
        return dense(params[-1], points)

    def twice(params: Any, points: jax.Array, axis: int) -> jax.Array:
        along = jnp.zeros_like(points).at[:, axis].set(1.0)
        once = lambda z: jax.jvp(lambda z: network(params, z), (z,), (along,))[1]  # noqa: E731
        return jax.jvp(once, (points,), (along,))[1]

    def loss(params: Any, points: jax.Array, edge: jax.Array, existing: jax.Array) -> jax.Array:
        residual = twice(params, points, 0) - 4 * twice(params, points, 1)
        return jnp.mean(residual**2) + 10 * jnp.mean((network(params, edge) - existing) ** 2)

    def step(params: Any, state: Any, points: jax.Array, edge: jax.Array, existing: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, points, edge, existing)
        return value, *adam(params, grads, state)

    params = [linear(2, 64), *[linear(64, 64)] * 5, linear(64, 1)]
    return UnseenStep(step, (params, adam_state(params), shape(1024, 2), shape(256, 2), shape(256, 1)))


def moving_bodies(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that learns the force between bodies through thirty Verlet steps in a `lax.scan`."""
    run = Blocks(checkpoint, scopes)

    def force(p: Any, place: jax.Array) -> jax.Array:
        apart = place[:, :, None] - place[:, None]
        far = jnp.sum(apart**2, axis=-1, keepdims=True) + 0.1
        return jnp.sum(apart * dense(p["second"], jnp.tanh(dense(p["first"], jnp.log(far)))), axis=2)

    def loss(params: Any, place: jax.Array, speed: jax.Array, end: jax.Array) -> jax.Array:
        def advance(carry: Any, _: None) -> Any:
            place, speed = carry
            speed = speed + 0.01 * run("force", force, params, place)
            return (place + 0.01 * speed, speed), jnp.mean(speed**2)

        (place, _), energies = lax.scan(advance, (place, speed), None, length=30)
        return jnp.mean((place - end) ** 2) + 0.01 * jnp.var(energies)

    def step(params: Any, place: jax.Array, speed: jax.Array, end: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, place, speed, end)
        return value, sgd(params, grads)

    params = {"first": linear(1, 16), "second": linear(16, 1)}
    return UnseenStep(step, (params, *[shape(16, 24, 3)] * 3), donate=(0,))


def adapters_accumulated(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains low-rank adapters, with dropout, over four microbatches in a `lax.scan`."""
    run = Blocks(checkpoint, scopes)

    def layer(frozen: Any, low: Any, x: jax.Array, key: jax.Array) -> jax.Array:
        z = layer_norm(x, **frozen["norm"])
        q, k, v = (split_heads(z @ frozen[n] + z @ low[n]["w"] @ low[n]["b"], 4) for n in "qkv")
        x = x + attend(q, k, v)
        kept = jax.random.bernoulli(key, 0.9, x.shape)
        return x + jnp.where(kept, jax.nn.relu(x @ frozen["up"]) @ frozen["down"], 0.0)

    def loss(low: Any, frozen: Any, x: jax.Array, labels: jax.Array, key: jax.Array) -> jax.Array:
        for i, p in enumerate(low["layers"]):
            x = run(f"layer{i}", layer, frozen, p, x, jax.random.fold_in(key, i))
        return cross_entropy(dense(low["head"], x.mean(1)), labels % 10)

    def step(low: Any, state: Any, frozen: Any, xs: jax.Array, labels: jax.Array, data: jax.Array) -> Any:
        def accumulate(total: Any, batch: Any) -> Any:
            key = jax.random.fold_in(jax.random.wrap_key_data(data), batch[2])
            value, grads = jax.value_and_grad(loss)(low, frozen, *batch[:2], key)
            return jax.tree.map(jnp.add, total, grads), value

        total, values = lax.scan(accumulate, jax.tree.map(jnp.zeros_like, low), (xs, labels, jnp.arange(4)))
        return values.mean(), *adam(low, total, state)

    frozen = {n: shape(64, 64) for n in "qkv"} | {"up": shape(64, 256), "down": shape(256, 64), "norm": normed(64)}
    thin = {"w": shape(64, 4), "b": shape(4, 64)}
    low = {"layers": [{n: thin for n in "qkv"}] * 3, "head": linear(64, 10)}
    return UnseenStep(
        step, (low, adam_state(low), frozen, shape(4, 8, 64, 64), integers(4, 8), key_data()), donate=(0, 1)
    )


def halting(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that applies one layer six times, and weights the results by halting probabilities."""
    run = Blocks(checkpoint, scopes)

    def think(p: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        z = layer_norm(x, **p["norm"])
        q, k, v = (split_heads(dense(p[name], z), 8) for name in "qkv")
        x = x + attend(q, k, v)
        x = x + dense(p["down"], jax.nn.gelu(dense(p["up"], x)))
        return x, jax.nn.sigmoid(dense(p["halt"], x))[..., 0]

    def loss(p: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
        left, out, cost = jnp.ones(x.shape[:2]), jnp.zeros_like(x), jnp.zeros(())
        for turn in range(6):
            x, stop = run(f"think{turn}", think, p, x)
            share = left * (stop if turn < 5 else 1.0)
            out, left = out + share[..., None] * x, left - share
            cost = cost + left.mean()
        return cross_entropy(dense(p["head"], out.mean(1)), labels % 8) + 0.01 * cost

    def step(p: Any, x: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(p, x, labels)
        return value, sgd(p, grads)

    p = {name: linear(64, 64) for name in "qkv"} | {"up": linear(64, 192), "down": linear(192, 64)}
    p |= {"norm": normed(64), "halt": linear(64, 1), "head": linear(64, 8)}
    return UnseenStep(step, (p, shape(8, 96, 64), integers(8)), donate=(0,))


STEPS: dict[str, Builder] = {
    step.__name__: step for step in (inner_steps, wave_equation, moving_bodies, adapters_accumulated, halting)
}
