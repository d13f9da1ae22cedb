"""Steps with unusual losses: two views, target networks, gradient penalties, several heads."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.open.open_layers import (
    avg_pool,
    batch_norm,
    conv,
    cross_entropy,
    dense,
    linear,
    max_pool,
    normed,
)
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, sgd, shape


def simclr(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains SimCLR, with two views through the same network and a contrastive loss."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        return avg_pool(jax.nn.relu(batch_norm(conv(jax.nn.relu(conv(x, p["w1"])), p["w2"]), **p["norm"])))

    def tower(params: Any, x: jax.Array) -> jax.Array:
        for i, p in enumerate(params["blocks"]):
            x = run(f"tower/block{i}", block, p, x)
        z = dense(params["project"], x.mean((1, 2)))
        return z / (jnp.linalg.norm(z, axis=-1, keepdims=True) + 1e-6)

    def loss(params: Any, first: jax.Array, second: jax.Array) -> jax.Array:
        z = jnp.concatenate([tower(params, first), tower(params, second)])
        n = z.shape[0]
        similar = z @ z.T / 0.2 - 1e9 * jnp.eye(n)
        return -jnp.mean(jax.nn.log_softmax(similar)[jnp.arange(n), (jnp.arange(n) + n // 2) % n])

    def step(params: Any, first: jax.Array, second: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, first, second)
        return value, sgd(params, grads)

    sizes = [(3, 16), (16, 32), (32, 48), (48, 64)]
    blocks = [{"w1": shape(3, 3, a, b), "w2": shape(3, 3, b, b), "norm": normed(b)} for a, b in sizes]
    params = {"blocks": blocks, "project": linear(64, 32)}
    return UnseenStep(step, (params, shape(8, 48, 48, 3), shape(8, 48, 48, 3)))


def dqn(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains double Q-learning with a slowly averaged target network."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        return max_pool(x + jax.nn.relu(conv(jax.nn.relu(conv(x, p["w1"])), p["w2"])))

    def q_values(params: Any, frames: jax.Array) -> jax.Array:
        x = conv(frames, params["stem"])
        for i, p in enumerate(params["blocks"]):
            x = run(f"q_net/conv{i}", block, p, x)
        x = jax.nn.relu(dense(params["hidden"], x.reshape(x.shape[0], -1)))
        advantage = dense(params["advantage"], x)
        return dense(params["value"], x) + advantage - advantage.mean(-1, keepdims=True)

    def loss(
        params: Any, target: Any, now: jax.Array, action: jax.Array, reward: jax.Array, then: jax.Array
    ) -> jax.Array:
        best = jnp.argmax(q_values(params, then), axis=-1)
        future = jnp.take_along_axis(q_values(target, then), best[:, None], axis=-1)[:, 0]
        expected = jax.lax.stop_gradient(reward + 0.99 * future)
        error = jnp.abs(jnp.take_along_axis(q_values(params, now), action[:, None], axis=-1)[:, 0] - expected)
        return jnp.mean(jnp.where(error < 1.0, 0.5 * error**2, error - 0.5))

    def step(params: Any, target: Any, state: Any, *batch: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, target, *batch)
        params, state = adam(params, grads, state)
        target = jax.tree.map(lambda t, p: 0.995 * t + 0.005 * p, target, params)
        return value, params, target, state

    params = {"stem": shape(5, 5, 4, 24), "blocks": [{"w1": shape(3, 3, 24, 24), "w2": shape(3, 3, 24, 24)}] * 4}
    params |= {"hidden": linear(16 * 24, 64), "advantage": linear(64, 32), "value": linear(64, 1)}
    batch = (shape(8, 64, 64, 4), integers(8), shape(8), shape(8, 64, 64, 4))
    return UnseenStep(step, (params, params, adam_state(params), *batch), donate=(0, 1, 2))


def r1_penalty(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains an image critic. Its loss penalizes the critic's gradient with respect to real images
    (R1).
    """
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        y = conv(jax.nn.silu(conv(x, p["w1"])), p["w2"])
        return avg_pool((jax.nn.silu(y) + conv(x, p["short"])) * 0.7)

    def critic(params: Any, x: jax.Array) -> jax.Array:
        for i, p in enumerate(params["blocks"]):
            x = run(f"critic/res{i}", block, p, x)
        return dense(params["head"], x.sum((1, 2)))[:, 0]

    def loss(params: Any, real: jax.Array, fake: jax.Array) -> jax.Array:
        slope = jax.grad(lambda x: critic(params, x).sum())(real)
        penalty = jnp.mean(jnp.sum(slope**2, axis=(1, 2, 3)))
        wrong = jax.nn.softplus(critic(params, fake)).mean() + jax.nn.softplus(-critic(params, real)).mean()
        return wrong + 5.0 * penalty

    sizes = [(3, 12), (12, 24), (24, 32), (32, 32)]
    blocks = [{"w1": shape(3, 3, a, a), "w2": shape(3, 3, a, b), "short": shape(1, 1, a, b)} for a, b in sizes]
    params = {"blocks": blocks, "head": linear(32, 1)}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(6, 64, 64, 3), shape(6, 64, 64, 3)))


def pinn_burgers(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a physics-informed network for Burgers' equation, with second derivatives."""
    run = Blocks(checkpoint, scopes)

    def network(params: Any, x: jax.Array, t: jax.Array) -> jax.Array:
        y = jnp.stack([x, t], axis=-1)
        for i, p in enumerate(params):
            y = run(f"dense_{i}", lambda p, y: jnp.tanh(dense(p, y)), p, y)
        return y.sum()

    def loss(params: Any, xs: jax.Array, ts: jax.Array) -> jax.Array:
        def residual(x: jax.Array, t: jax.Array) -> jax.Array:
            u = network(params, x, t)
            slope = jax.grad(network, argnums=(1, 2))
            u_x, u_t = slope(params, x, t)
            u_xx = jax.grad(lambda x: slope(params, x, t)[0])(x)
            return u_t + u * u_x - 0.003 * u_xx

        return jnp.mean(jax.vmap(residual)(xs, ts) ** 2)

    def step(params: Any, state: Any, xs: jax.Array, ts: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, xs, ts)
        return value, *adam(params, grads, state)

    widths = [2, 40, 40, 40, 40, 40]
    params = [linear(a, b) for a, b in pairwise(widths)]
    return UnseenStep(step, (params, adam_state(params), shape(4096), shape(4096)))


def auxiliary_heads(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a tower of six convolutional blocks with a classifier after every second block."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        x = jax.nn.relu(batch_norm(conv(x, p["w1"]), **p["n1"]))
        return jax.nn.relu(batch_norm(conv(x, p["w2"]), **p["n2"]))

    def loss(params: Any, image: jax.Array, labels: jax.Array) -> Any:
        x, total = conv(image, params["stem"], 2), 0.0
        for i, p in enumerate(params["blocks"]):
            x = run(f"tower_{i}", block, p, x)
            if i % 2:
                with run.scope(f"aux_{i}"):
                    total = total + 0.3 * (i // 2 + 1) * cross_entropy(
                        dense(params["heads"][i // 2], x.mean((1, 2))), labels
                    )
        return total

    entry = {"w1": shape(3, 3, 20, 20), "w2": shape(3, 3, 20, 20), "n1": normed(20), "n2": normed(20)}
    params = {"stem": shape(7, 7, 3, 20), "blocks": [entry] * 6, "heads": [linear(20, 32)] * 3}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(8, 80, 80, 3), integers(8)))


def domain_adversarial(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a label head, and a domain head after a gradient reversal (`custom_vjp`)."""
    run = Blocks(checkpoint, scopes)

    @jax.custom_vjp
    def reverse(x: jax.Array) -> jax.Array:
        return x

    reverse.defvjp(lambda x: (x, None), lambda _, g: (-0.3 * g,))

    def block(p: Any, x: jax.Array) -> jax.Array:
        return jax.nn.relu(batch_norm(dense(p["second"], jax.nn.relu(dense(p["first"], x))), **p["norm"]) + x)

    def loss(params: Any, x: jax.Array, labels: jax.Array, domain: jax.Array) -> jax.Array:
        for i, p in enumerate(params["features"]):
            x = run(f"features_{i}", block, p, x)
        y = reverse(x)
        for i, p in enumerate(params["domain"]):
            y = run(f"domain_{i}", block, p, y)
        logit = dense(params["domain_head"], y)[:, 0]
        return cross_entropy(dense(params["head"], x), labels) + jnp.mean(jax.nn.softplus(logit) - domain * logit)

    entry = {"first": linear(64, 128), "second": linear(128, 64), "norm": normed(64)}
    params = {"features": [entry] * 4, "domain": [entry] * 3, "head": linear(64, 32), "domain_head": linear(64, 1)}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(2048, 64), integers(2048), shape(2048)))


STEPS = {
    "simclr": simclr,
    "dqn": dqn,
    "r1_penalty": r1_penalty,
    "pinn_burgers": pinn_burgers,
    "auxiliary_heads": auxiliary_heads,
    "domain_adversarial": domain_adversarial,
}
