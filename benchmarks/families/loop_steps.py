"""Steps with consecutive, nested and conditional loops over layers and over time."""

# pyright: basic
# ruff: noqa: E731

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from recompute.benchmarks.families.parts import (
    descend,
    layer_of,
    layers,
    loss_of,
    mean_square,
    mlp,
    normal,
    scanned,
    step,
)


@step
def two_forward_loops(wrap):
    """Build a step whose forward pass runs two scans, one after the other."""

    def loss(p, batches):
        codes = lax.map(wrap(lambda x: jnp.tanh(jnp.sin(x @ p["e"]) @ p["f"])), batches)
        recurrence = wrap(lambda h, z: (jnp.tanh(h @ p["r"] + z), jnp.mean(h)))
        h, means = lax.scan(recurrence, jnp.zeros_like(batches[0]), codes)
        return mean_square(h) + jnp.mean(means)

    p = {"e": normal(32, 128), "f": normal(128, 32), "r": normal(32, 32)}
    return jax.value_and_grad(loss), (p, normal(8, 64, 32))


@step
def encoder_and_decoder(wrap):
    """Build a step with one scan over encoder layers, and one over decoder layers that read its result."""

    def loss(p, x, y):
        memory = jnp.tanh(scanned(wrap, p["encoder"], x))
        return mean_square(scanned(wrap, p["decoder"], y, lambda y, q: mlp(y + memory, q)))

    p = {"encoder": layers(6), "decoder": layers(6)}
    return jax.value_and_grad(loss), (p, normal(64, 32), normal(64, 32))


@step
def proximal_policy(wrap):
    """Build a PPO step that computes a rollout and returns in scans, and updates the policy in a scan over epochs."""

    def update(p, state, noise):
        def roll(state, noise):
            action = jnp.tanh(mlp(state, p) @ p["head"]) + noise
            return jnp.tanh(state + action @ p["head"].T), (state, action, jnp.mean(state * state, -1))

        def discounted(total, reward):
            total = reward + 0.9 * total
            return total, total

        _, (states, actions, rewards) = lax.scan(roll, state, noise)
        _, returns = lax.scan(discounted, jnp.zeros_like(rewards[0]), rewards, reverse=True)

        def loss(p):
            def body(total, sample):
                state, action, weight = sample
                mean = jnp.tanh(mlp(mlp(state, p), p) @ p["head"])
                return total + jnp.mean((mean - action) ** 2 * weight[:, None]), None

            return lax.scan(wrap(body), 0.0, (states, actions, returns))[0]

        def epoch(p, _):
            value, gradient = jax.value_and_grad(loss)(p)
            return descend(p, gradient), value

        return lax.scan(epoch, p, None, length=3)

    p = {**layer_of(layers(1), 0), "head": normal(32, 8)}
    return update, (p, normal(64, 32), normal(8, 64, 8))


@step
def scan_cond_scan(wrap):
    """Build a step with a scan whose body runs another scan inside a conditional."""

    def loss(p, x):
        inner = lambda x: lax.scan(wrap(lambda x, _: (mlp(x, p), None)), x, None, length=8)[0]
        outer = lambda x, _: (lax.cond(jnp.max(x) < 4.0, inner, lambda x: x, x), None)
        return mean_square(lax.scan(wrap(outer), x, None, length=8)[0])

    p = jax.tree.map(lambda w: 0.1 * w, layer_of(layers(1), 0))
    return jax.value_and_grad(loss), (p, normal(64, 32))


@step
def cond_scan(wrap):
    """Build a step that scans over layers inside a conditional."""

    def loss(p, x):
        return mean_square(lax.cond(jnp.mean(x) < 4.0, lambda x: scanned(wrap, p, x), lambda x: x * 2, x))

    return jax.value_and_grad(loss), (layers(8), normal(64, 32))


@step
def scan_switch(wrap):
    """Build a step with a scan whose body selects one of three branches with `lax.switch`."""

    def loss(p, x):
        branches = [mlp, lambda x, q: jnp.tanh(x @ q["up"] @ q["down"]), lambda x, q: x]
        body = lambda x, chosen: (lax.switch(chosen[0] % 3, branches, x, chosen[1]), None)
        return mean_square(lax.scan(wrap(body), x, (jnp.arange(8), p))[0])

    return jax.value_and_grad(loss), (layers(8), normal(64, 32))


@step
def bounded_while(wrap):
    """Build a step with a scan of fixed length whose body returns its input unchanged once a stop condition holds."""

    def loss(p, x):
        def body(carry, q):
            x, is_done = carry
            y = lax.cond(is_done, lambda x: x, lambda x: mlp(x, q), x)
            return (y, is_done | (jnp.mean(y) > 99.0)), None

        return mean_square(lax.scan(wrap(body), (x, False), p)[0][0])

    return jax.value_and_grad(loss), (layers(8), normal(64, 32))


@step
def cond_in_blocks(wrap):
    """Build a step with unrolled blocks that each contain a conditional."""

    def loss(p, x):
        for index in range(6):
            x = lax.cond(x[0, 0] > -9, wrap(mlp), lambda x, q: x, x, layer_of(p, index))
        return mean_square(x)

    return jax.value_and_grad(loss), (layers(6), normal(128, 32))


@step
def map_over_layers(wrap):
    """Build a step that applies several layers to the same input, with `lax.map` over their weights."""

    def loss(p, x):
        return mean_square(lax.map(wrap(lambda q: mlp(mlp(x, q), q)), p))

    return jax.value_and_grad(loss), (layers(8), normal(64, 32))


def _scans_in_a_scan(wrap, around):
    def loss(p, batches):
        per_batch = loss_of(scanned, wrap)
        return lax.scan(around(lambda total, x: (total + per_batch(p, x), None)), 0.0, batches)[0]

    return jax.value_and_grad(loss), (layers(6), normal(4, 64, 32))


@step
def scan_in_scan(wrap):
    """Build a step with nested scans, with `wrap` around the inner body only."""
    return _scans_in_a_scan(wrap, lambda body: body)


@step
def scan_in_scan_both(wrap):
    """Build a step with nested scans, with `wrap` around both bodies."""
    return _scans_in_a_scan(wrap, wrap)


@step
def runge_kutta(wrap):
    """Build a step that integrates a differential equation with a fourth-order method in a loop."""

    def loss(p, x):
        slope = lambda x: jnp.tanh(x @ p["up"]) @ p["down"]

        def advance(_, x):
            first = slope(x)
            second = slope(x + 0.05 * first)
            third = slope(x + 0.05 * second)
            fourth = slope(x + 0.1 * third)
            return x + 0.1 / 6 * (first + 2 * second + 2 * third + fourth)

        return mean_square(lax.fori_loop(0, 8, wrap(advance), x))

    return jax.value_and_grad(loss), (layer_of(layers(1), 0), normal(64, 32))


@step
def equilibrium(wrap):
    """Build a step whose model iterates towards a fixed point in a loop."""

    def loss(p, x):
        body = wrap(lambda _, z: jnp.tanh(z @ p["up"] @ p["down"] + x))
        return mean_square(lax.fori_loop(0, 12, body, jnp.zeros_like(x)))

    return jax.value_and_grad(loss), (layer_of(layers(1), 0), normal(64, 32))


@step
def gated_recurrence(wrap):
    """Build a step with a gated recurrent cell in a scan over time."""

    def loss(p, inputs):
        def cell(h, x):
            gate = jax.nn.sigmoid(x @ p["zx"] + h @ p["zh"])
            new = jnp.tanh(x @ p["nx"] + (gate * h) @ p["nh"])
            h = (1 - gate) * new + gate * h
            return h, h

        return mean_square(lax.scan(wrap(cell), jnp.zeros((64, 32)), inputs)[1])

    return jax.value_and_grad(loss), ({name: normal(32, 32) for name in ("zx", "zh", "nx", "nh")}, normal(16, 64, 32))


@step
def state_space(wrap):
    """Build a step with unrolled layers that each run Mamba's selective scan over time."""

    def loss(p, inputs):
        def layer(inputs, q):
            def cell(h, x):
                rate = jax.nn.softplus(x @ q["rate"])
                h = h * jnp.exp(-rate)[..., None] + (rate * x)[..., None] * q["in"]
                return h, (h * q["out"]).sum(-1)

            return inputs + lax.scan(wrap(cell), jnp.zeros((8, 32, 4)), inputs)[1]

        for index in range(3):
            inputs = wrap(layer)(inputs, layer_of(p, index))
        return mean_square(inputs)

    p = {"rate": normal(3, 32, 32), "in": normal(3, 4), "out": normal(3, 4)}
    return jax.value_and_grad(loss), (p, normal(16, 8, 32))


@step
def recurrence_with_attention(wrap):
    """Build a step with a recurrent cell that attends to a memory in each iteration of a scan."""

    def loss(p, inputs, memory):
        def cell(h, x):
            weights = jax.nn.softmax(h @ memory.T)
            h = jnp.tanh(x @ p["x"] + h @ p["h"] + weights @ memory)
            return h, jnp.mean(h)

        return jnp.mean(lax.scan(wrap(cell), jnp.zeros((64, 32)), inputs)[1])

    p = {"x": normal(32, 32), "h": normal(32, 32)}
    return jax.value_and_grad(loss), (p, normal(12, 64, 32), normal(48, 32))
