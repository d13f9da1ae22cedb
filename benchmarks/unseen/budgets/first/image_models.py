"""Steps on images: a U-Net, capsules, a frozen critic, style transfer, and a vector-quantized autoencoder."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.open.open_layers import (
    attend,
    avg_pool,
    batch_norm,
    conv,
    dense,
    group_norm,
    linear,
    normed,
    split_heads,
    upconv,
)
from recompute.benchmarks.unseen.step_parts import (
    Blocks,
    Builder,
    UnseenStep,
    adam,
    adam_state,
    integers,
    key_data,
    momentum,
    sgd,
    shape,
)


def unet_attention(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a U-Net of three levels, with attention at the lowest level."""
    run = Blocks(checkpoint, scopes)

    def pair(p: Any, x: jax.Array) -> jax.Array:
        for kernel, norm in ((p["k0"], p["n0"]), (p["k1"], p["n1"])):
            x = jax.nn.silu(group_norm(conv(x, kernel), **norm, groups=4))
        return x

    def mix(p: Any, x: jax.Array) -> jax.Array:
        flat = x.reshape(x.shape[0], -1, x.shape[-1])
        q, k, v = (split_heads(dense(p[name], flat), 4) for name in "qkv")
        return x + attend(q, k, v).reshape(x.shape)

    def loss(params: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        skips: list[jax.Array] = []
        for depth in range(2):
            x = run(f"down{depth}", pair, params[f"down{depth}"], x)
            skips.append(x)
            x = avg_pool(x)
        x = run("bottom", pair, params["bottom"], x)
        x = run("attention", mix, params["attention"], x)
        for depth in (1, 0):
            x = jnp.concatenate([skips[depth], upconv(x, params[f"grow{depth}"])], axis=-1)
            x = run(f"up{depth}", pair, params[f"up{depth}"], x)
        return jnp.mean((conv(x, params["last"]) - target) ** 2)

    def two(inputs: int, outputs: int) -> Any:
        kernels = {"k0": shape(3, 3, inputs, outputs), "k1": shape(3, 3, outputs, outputs)}
        return kernels | {"n0": normed(outputs), "n1": normed(outputs)}

    def step(params: Any, state: Any, x: jax.Array, target: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, target)
        return value, *adam(params, grads, state)

    params = {"down0": two(3, 16), "down1": two(16, 32), "bottom": two(32, 64), "up1": two(64, 32), "up0": two(32, 16)}
    params |= {"grow1": shape(2, 2, 64, 32), "grow0": shape(2, 2, 32, 16), "last": shape(1, 1, 16, 3)}
    params["attention"] = {name: linear(64, 64) for name in "qkv"}
    return UnseenStep(step, (params, adam_state(params), shape(8, 32, 32, 3), shape(8, 32, 32, 3)), donate=(0, 1))


def capsules(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a capsule network with three rounds of routing and a margin loss."""
    run = Blocks(checkpoint, scopes)

    def squash(x: jax.Array) -> jax.Array:
        square = jnp.sum(x * x, axis=-1, keepdims=True)
        return x * square / (1 + square) / jnp.sqrt(square + 1e-7)

    def primary(p: Any, x: jax.Array) -> jax.Array:
        x = jax.nn.relu(conv(x, p["first"], 2))
        return squash(conv(x, p["second"], 2).reshape(x.shape[0], -1, 8))

    def routing(votes: jax.Array, logits: jax.Array) -> tuple[jax.Array, jax.Array]:
        share = jax.nn.softmax(logits, axis=-1)
        agreed = squash(jnp.einsum("bij,bijd->bjd", share, votes))
        return agreed, logits + jnp.einsum("bijd,bjd->bij", votes, agreed)

    def loss(params: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
        u = run("primary", primary, params, x)
        votes = run("votes", lambda w, u: jnp.einsum("bik,ikjd->bijd", u, w), params["votes"], u)
        logits, agreed = jnp.zeros(votes.shape[:3]), jnp.zeros(())
        for turn in range(3):
            agreed, logits = run(f"routing{turn}", routing, votes, logits)
        length = jnp.sqrt(jnp.sum(agreed**2, axis=-1) + 1e-7)
        right = jax.nn.one_hot(labels % 10, 10)
        low, high = jnp.maximum(0, 0.9 - length) ** 2, jnp.maximum(0, length - 0.1) ** 2
        return jnp.mean(jnp.sum(right * low + 0.5 * (1 - right) * high, axis=-1))

    def step(params: Any, x: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, labels)
        return value, sgd(params, grads)

    params = {"first": shape(5, 5, 1, 32), "second": shape(5, 5, 32, 64), "votes": shape(392, 8, 10, 16)}
    return UnseenStep(step, (params, shape(32, 28, 28, 1), integers(32)), donate=(0,))


def generator_only(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a generator against a frozen critic, and returns batch-norm moments."""
    run = Blocks(checkpoint, scopes)

    def grow(p: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = upconv(x, p["kernel"])
        return jax.nn.relu(batch_norm(y, **p["norm"])), jnp.stack([y.mean((0, 1, 2)), y.var((0, 1, 2))])

    def judge(w: jax.Array, x: jax.Array) -> jax.Array:
        return jax.nn.leaky_relu(conv(x, w, 2), 0.2)

    def loss(params: Any, critic: Any, key: jax.Array) -> tuple[jax.Array, list[jax.Array]]:
        noise = jax.random.normal(jax.random.wrap_key_data(key), (32, 32))
        x = dense(params["seed"], noise).reshape(32, 4, 4, 64)
        moments: list[jax.Array] = []
        for i in range(3):
            x, seen = run(f"grow{i}", grow, params[f"grow{i}"], x)
            moments.append(seen)
        x = jnp.tanh(conv(x, params["paint"]))
        for i in range(3):
            x = run(f"judge{i}", judge, critic[i], x)
        return jnp.mean(jax.nn.softplus(-x.mean((1, 2, 3)))), moments

    def step(params: Any, velocity: Any, running: Any, critic: Any, key: jax.Array) -> Any:
        (value, moments), grads = jax.value_and_grad(loss, has_aux=True)(params, critic, key)
        running = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, running, moments)
        return value, running, momentum(params, grads, velocity)

    widths = (64, 48, 32, 16)
    params = {f"grow{i}": {"kernel": shape(4, 4, a, b), "norm": normed(b)} for i, (a, b) in enumerate(pairwise(widths))}
    params |= {"seed": linear(32, 1024), "paint": shape(3, 3, 16, 3)}
    critic = [shape(3, 3, 3, 32), shape(3, 3, 32, 64), shape(3, 3, 64, 64)]
    running = [shape(2, width) for width in widths[1:]]
    return UnseenStep(step, (params, params, running, critic, key_data()), donate=(0, 1, 2))


def style_transfer(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that updates an image by its gradient through five frozen layers (style transfer)."""
    run = Blocks(checkpoint, scopes)

    def layer(w: jax.Array, x: jax.Array) -> jax.Array:
        return jax.nn.relu(conv(x, w))

    def gram(x: jax.Array) -> jax.Array:
        flat = x.reshape(x.shape[0], -1, x.shape[-1])
        return jnp.einsum("bpc,bpd->bcd", flat, flat) / flat.shape[1]

    def loss(picture: jax.Array, kernels: Any, styles: Any, content: jax.Array) -> jax.Array:
        x, total = picture, jnp.mean(jnp.abs(picture[:, 1:] - picture[:, :-1]))
        for i, kernel in enumerate(kernels):
            x = run(f"vgg{i}", layer, kernel, x)
            total = total + jnp.mean((gram(x) - styles[i]) ** 2)
            if i == 3:
                total = total + jnp.mean((x - content) ** 2)
            if i in (1, 3):
                x = avg_pool(x)
        return total

    def step(picture: jax.Array, kernels: Any, styles: Any, content: jax.Array) -> Any:
        value, grad = jax.value_and_grad(loss)(picture, kernels, styles, content)
        return value, jnp.clip(picture - 0.1 * grad, -1, 1)

    widths = (3, 16, 24, 32, 32, 48)
    kernels = [shape(3, 3, a, b) for a, b in pairwise(widths)]
    styles = [shape(2, b, b) for b in widths[1:]]
    return UnseenStep(step, (shape(2, 96, 96, 3), kernels, styles, shape(2, 48, 48, 32)))


def codebook(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a vector-quantized autoencoder with moving averages as codes."""
    run = Blocks(checkpoint, scopes)

    def residual(p: Any, x: jax.Array) -> jax.Array:
        return x + conv(jax.nn.relu(conv(jax.nn.relu(x), p["k0"])), p["k1"])

    def nearest(codes: jax.Array, z: jax.Array) -> jax.Array:
        distance = jnp.sum(z * z, -1, keepdims=True) - 2 * z @ codes.T + jnp.sum(codes * codes, -1)
        return jnp.argmin(distance, axis=-1)

    def loss(params: Any, codes: jax.Array, x: jax.Array) -> Any:
        z = conv(x, params["in"], 2)
        for i in range(2):
            z = run(f"encoder{i}", residual, params[f"encoder{i}"], z)
        chosen = run("quantize", nearest, codes, z)
        taken = codes[chosen]
        y = z + jax.lax.stop_gradient(taken - z)
        for i in range(2):
            y = run(f"decoder{i}", residual, params[f"decoder{i}"], y)
        y = upconv(y, params["out"])
        return jnp.mean((y - x) ** 2) + 0.25 * jnp.mean((z - jax.lax.stop_gradient(taken)) ** 2), (z, chosen)

    def step(params: Any, codes: jax.Array, counts: jax.Array, x: jax.Array) -> Any:
        (value, (z, chosen)), grads = jax.value_and_grad(loss, has_aux=True)(params, codes, x)
        hot = jax.nn.one_hot(chosen.reshape(-1), 512)
        counts = 0.99 * counts + 0.01 * hot.sum(0)
        codes = 0.99 * codes + 0.01 * (hot.T @ z.reshape(-1, z.shape[-1])) / (counts[:, None] + 1e-5)
        return value, sgd(params, grads), codes, counts

    params = {
        f"{half}{i}": {"k0": shape(3, 3, 32, 32), "k1": shape(1, 1, 32, 32)}
        for half in ("encoder", "decoder")
        for i in range(2)
    }
    params |= {"in": shape(4, 4, 3, 32), "out": shape(4, 4, 32, 3)}
    return UnseenStep(step, (params, shape(512, 32), shape(512), shape(16, 32, 32, 3)), donate=(0, 1, 2))


STEPS: dict[str, Builder] = {
    step.__name__: step for step in (unet_attention, capsules, generator_only, style_transfer, codebook)
}
