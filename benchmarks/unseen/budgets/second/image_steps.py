"""Steps on images: a U-Net with attention, a frozen critic, capsules, and running moments."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.open.open_layers import avg_pool, conv, dense, group_norm, linear, normed, upconv
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, key_data, momentum, sgd, shape


def unet_two_attentions(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a U-Net with attention over all pixels at its two lowest levels."""
    run = Blocks(checkpoint, scopes)

    def residual(p: Any, x: jax.Array) -> jax.Array:
        h = jax.nn.silu(group_norm(conv(x, p["w1"]), **p["norm"], groups=4))
        return conv(x, p["skip"]) + conv(h, p["w2"])

    def attention(p: Any, x: jax.Array) -> jax.Array:
        flat = x.reshape(x.shape[0], -1, x.shape[-1])
        q, k, v = jnp.split(flat @ p["qkv"], 3, -1)
        weights = jax.nn.softmax(jnp.einsum("bqc,bkc->bqk", q, k) * q.shape[-1] ** -0.5)
        return x + (jnp.einsum("bqk,bkc->bqc", weights, v) @ p["out"]).reshape(x.shape)

    def loss(params: Any, noisy: jax.Array, noise: jax.Array) -> jax.Array:
        x, skips = conv(noisy, params["stem"]), list[jax.Array]()
        for i, p in enumerate(params["down"]):
            x = run(f"down{i}", residual, p, x)
            skips.append(x)
            x = avg_pool(x)
        x = run("middle", attention, params["attend"], x)
        for i, p in enumerate(params["up"]):
            x = jnp.concatenate([upconv(x, p["w"]), skips.pop()], -1)
            x = run(f"up{i}", residual, p["block"], x)
            if i == 0:
                x = run("low", attention, params["low"], x)
        return jnp.mean((conv(x, params["head"]) - noise) ** 2)

    def step(params: Any, noisy: jax.Array, noise: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, noisy, noise)
        return value, sgd(params, grads)

    def block(a: int, b: int) -> Any:
        skip = shape(1, 1, a, b)
        return {"w1": shape(3, 3, a, b), "w2": shape(3, 3, b, b), "skip": skip, "norm": normed(b)}

    widths = [16, 32, 48]
    down = [block(16, 16), block(16, 32), block(32, 48)]
    pairs = zip((48, 48, 32), widths[::-1], strict=True)
    up = [{"w": shape(2, 2, below, c), "block": block(2 * c, c)} for below, c in pairs]
    attend = {"qkv": shape(48, 144), "out": shape(48, 48)}
    params = {"stem": shape(3, 3, 3, 16), "down": down, "up": up, "attend": attend, "low": attend}
    params["head"] = shape(1, 1, 16, 3)
    return UnseenStep(step, (params, shape(4, 64, 64, 3), shape(4, 64, 64, 3)), donate=(0,))


def gan_generator(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a generator, whose gradient passes through a frozen critic."""
    run = Blocks(checkpoint, scopes)

    def grow(p: Any, x: jax.Array) -> jax.Array:
        return jax.nn.relu(group_norm(upconv(x, p["w"]), **p["norm"], groups=8))

    def shrink(w: jax.Array, x: jax.Array) -> jax.Array:
        return jax.nn.leaky_relu(conv(x, w, stride=2), 0.2)

    def loss(generator: Any, critic: Any, code: jax.Array) -> jax.Array:
        x = dense(generator["first"], code).reshape(-1, 4, 4, 64)
        for i, p in enumerate(generator["grow"]):
            x = run(f"generator{i}", grow, p, x)
        x = jnp.tanh(conv(x, generator["last"]))
        for i, w in enumerate(critic["shrink"]):
            x = run(f"critic{i}", shrink, w, x)
        return jnp.mean(jax.nn.softplus(-dense(critic["head"], x.reshape(x.shape[0], -1))))

    def step(generator: Any, velocity: Any, critic: Any, code: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(generator, critic, code)
        return value, momentum(generator, grads, velocity)

    grown = [{"w": shape(4, 4, a, b), "norm": normed(b)} for a, b in ((64, 48), (48, 32), (32, 24), (24, 16))]
    generator = {"first": linear(32, 1024), "grow": grown, "last": shape(3, 3, 16, 3)}
    sizes = ((3, 16), (16, 32), (32, 48), (48, 64))
    critic = {"shrink": [shape(4, 4, a, b) for a, b in sizes], "head": linear(1024, 1)}
    return UnseenStep(step, (generator, generator, critic, shape(16, 32)))


def capsules_drawn(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a capsule network, whose loss includes a reconstruction of the image."""
    run = Blocks(checkpoint, scopes)

    def squash(x: jax.Array) -> jax.Array:
        square = jnp.sum(x * x, -1, keepdims=True)
        return x * square / (1 + square) * jax.lax.rsqrt(square + 1e-7)

    def features(p: Any, image: jax.Array) -> jax.Array:
        x = conv(jax.nn.relu(conv(image, p["w1"])), p["w2"], stride=2)
        return squash(x.reshape(x.shape[0], -1, 8))

    def route(w: jax.Array, parts: jax.Array) -> jax.Array:
        votes = jnp.einsum("bic,iocd->biod", parts, w)
        logits, wholes = jnp.zeros(votes.shape[:3]), jnp.zeros(())
        for _ in range(3):
            wholes = squash(jnp.einsum("bio,biod->bod", jax.nn.softmax(logits, -1), votes))
            logits = logits + jnp.einsum("biod,bod->bio", votes, wholes)
        return wholes

    def draw(p: Any, x: jax.Array) -> jax.Array:
        return jax.nn.sigmoid(dense(p["second"], jax.nn.relu(dense(p["first"], x))))

    def loss(params: Any, image: jax.Array, label: jax.Array) -> jax.Array:
        wholes = run("route", route, params["votes"], run("features", features, params["features"], image))
        length, truth = jnp.sqrt(jnp.sum(wholes**2, -1) + 1e-7), jax.nn.one_hot(label % 10, 10)
        margin = truth * jax.nn.relu(0.9 - length) ** 2 + 0.5 * (1 - truth) * jax.nn.relu(length - 0.1) ** 2
        drawn = run("draw", draw, params["draw"], (wholes * truth[..., None]).reshape(len(label), -1))
        return margin.sum(-1).mean() + 5e-4 * jnp.sum((drawn - image.reshape(drawn.shape)) ** 2)

    def step(params: Any, image: jax.Array, label: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, label)
        return value, sgd(params, grads)

    params: dict[str, Any] = {
        "features": {"w1": shape(5, 5, 1, 32), "w2": shape(5, 5, 32, 32)},
        "votes": shape(400, 10, 8, 16),
    }
    params["draw"] = {"first": linear(160, 256), "second": linear(256, 400)}
    return UnseenStep(step, (params, shape(16, 20, 20, 1), shape(16, dtype=jnp.int32)))


def running_moments(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a network, and returns batch-norm moments and averaged weights."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, moments: Any, x: jax.Array, key: jax.Array) -> Any:
        h = conv(x, p["w"])
        mean, variance = h.mean((0, 1, 2)), h.var((0, 1, 2))
        h = jax.nn.gelu((h - mean) * jax.lax.rsqrt(variance + 1e-5) * p["scale"] + p["shift"])
        kept = jax.random.bernoulli(jax.random.wrap_key_data(key, impl="threefry2x32"), 0.9, h.shape)
        now = {"mean": mean, "variance": variance}
        return x + jnp.where(kept, h / 0.9, 0.0), jax.tree.map(lambda o, n: 0.9 * o + 0.1 * n, moments, now)

    def loss(params: Any, moments: Any, x: jax.Array, label: jax.Array, key: jax.Array) -> Any:
        x, after = conv(x, params["stem"]), list[Any]()
        for i, (p, old) in enumerate(zip(params["blocks"], moments, strict=True)):
            folded = jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(key, impl="threefry2x32"), i))
            x, new = run(f"block{i}", block, p, old, x, folded)
            after.append(new)
        logits = dense(params["head"], x.mean((1, 2)))
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), label[:, None], -1)), after

    def step(params: Any, slow: Any, moments: Any, x: jax.Array, label: jax.Array, key: jax.Array) -> Any:
        (value, moments), grads = jax.value_and_grad(loss, has_aux=True)(params, moments, x, label, key)
        params = sgd(params, grads)
        return value, params, jax.tree.map(lambda s, p: 0.999 * s + 0.001 * p, slow, params), moments

    blocks = [{"w": shape(3, 3, 24, 24), "scale": shape(24), "shift": shape(24)}] * 6
    params = {"stem": shape(3, 3, 3, 24), "blocks": blocks, "head": linear(24, 32)}
    moments = [{"mean": shape(24), "variance": shape(24)}] * 6
    return UnseenStep(
        step,
        (params, params, moments, shape(8, 40, 40, 3), shape(8, dtype=jnp.int32), key_data()),
        donate=(0, 1, 2),
    )


STEPS = {
    "unet_two_attentions": unet_two_attentions,
    "gan_generator": gan_generator,
    "capsules_drawn": capsules_drawn,
    "running_moments": running_moments,
}
