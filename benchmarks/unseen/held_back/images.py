"""Steps on images: pooled, separable and branching convolutions, some with losses at several depths."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from recompute.benchmarks.unseen.held_back.layers import (
    affine,
    batch_norm,
    channels,
    conv,
    group_norm,
    layer_norm,
    log_loss,
    matrix,
    transposed_convolution,
    vectors,
)
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, momentum, sgd, shape


def mean_pool(x: jax.Array) -> jax.Array:
    b, c, h, w = x.shape
    return x.reshape(b, c, h // 2, 2, w // 2, 2).mean((3, 5))


def unet_separable(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a U-Net of separable convolutions, with added skip connections and a dice loss."""
    run = Blocks(checkpoint, scopes)

    def separable(p: Any, x: jax.Array) -> jax.Array:
        x = conv(conv(x, p["depth"], groups=x.shape[1]), p["point"])
        return jax.nn.silu(group_norm(p["norm"], x, 4))

    def contract(p: Any, x: jax.Array) -> jax.Array:
        return separable(p[1], separable(p[0], x))

    def expand(p: Any, x: jax.Array, skip: jax.Array) -> jax.Array:
        wide = jax.image.resize(x, (*x.shape[:2], *skip.shape[2:]), "nearest")
        return separable(p[1], separable(p[0], wide) + skip)

    def loss(params: Any, image: jax.Array, mask: jax.Array) -> jax.Array:
        x, skips = conv(image, params["stem"]), []
        for p in params["down"]:
            x = run(f"contract_{len(skips)}", contract, p, x)
            skips.append(x)
            x = mean_pool(x)
        x = run("middle", contract, params["middle"], x)
        for p in params["up"]:
            skip = skips.pop()
            x = run(f"expand_{len(skips)}", expand, p, x, skip)
        chance = jax.nn.sigmoid(conv(x, params["head"]))
        return 1.0 - (2.0 * jnp.sum(chance * mask) + 1.0) / (jnp.sum(chance**2) + jnp.sum(mask**2) + 1.0)

    def layer_weights(a: int, b: int) -> Any:
        return {"depth": shape(a, 1, 3, 3), "point": shape(b, a, 1, 1), "norm": vectors(b)}

    down = [(16, 24), (24, 32), (32, 48)]
    params = {
        "stem": shape(16, 1, 3, 3),
        "down": [[layer_weights(a, b), layer_weights(b, b)] for a, b in down],
        "middle": [layer_weights(48, 64), layer_weights(64, 64)],
        "up": [[layer_weights(a, b), layer_weights(b, b)] for a, b in [(64, 48), (48, 32), (32, 24)]],
        "head": shape(1, 24, 1, 1),
    }
    return UnseenStep(jax.value_and_grad(loss), (params, shape(4, 1, 80, 80), shape(4, 1, 80, 80)))


def convnext(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains ConvNeXt: depthwise convolutions, layer norm over channels, and a scale per layer."""
    run = Blocks(checkpoint, scopes, inside=True)

    def block(p: Any, x: jax.Array) -> jax.Array:
        y = conv(x, p["depth"], groups=x.shape[1]).transpose(0, 2, 3, 1)
        y = affine(p["down"], jax.nn.gelu(affine(p["up"], layer_norm(p["norm"], y))))
        return x + (p["gamma"] * y).transpose(0, 3, 1, 2)

    def loss(params: Any, image: jax.Array, labels: jax.Array) -> jax.Array:
        x = lax.conv_general_dilated(image, params["patch"], (4, 4), "VALID")
        for s, stage in enumerate(params["stages"]):
            for i, p in enumerate(stage["blocks"]):
                x = run(f"stages.{s}.blocks.{i}", block, p, x)
            if "reduce" in stage:
                x = lax.conv_general_dilated(x, stage["reduce"], (2, 2), "VALID")
        return log_loss(affine(params["head"], x.mean((2, 3))), labels)

    def step(params: Any, state: Any, image: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, labels)
        return value, *adam(params, grads, state, decay=0.05)

    def layer_weights(c: int) -> Any:
        norms = {"norm": vectors(c), "gamma": shape(c)}
        return {"depth": shape(c, 1, 7, 7), "up": matrix(c, 4 * c), "down": matrix(4 * c, c), **norms}

    stages = [{"blocks": [layer_weights(32)] * 3, "reduce": shape(64, 32, 2, 2)}, {"blocks": [layer_weights(64)] * 3}]
    params = {"patch": shape(32, 3, 4, 4), "stages": stages, "head": matrix(64, 60)}
    return UnseenStep(step, (params, adam_state(params), shape(6, 3, 128, 128), integers(6)), donate=(0, 1))


def resnet_running(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a ResNet, which returns running moments as auxiliary results."""
    run = Blocks(checkpoint, scopes)

    def norm(p: Any, x: jax.Array) -> tuple[jax.Array, Any]:
        return batch_norm(p, x), (x.mean((0, 2, 3)), x.var((0, 2, 3)))

    def basic(p: Any, x: jax.Array) -> tuple[jax.Array, Any]:
        stride = p["w1"].shape[0] // x.shape[1]
        y, first = norm(p["n1"], conv(x, p["w1"], stride))
        y, second = norm(p["n2"], conv(jax.nn.relu(y), p["w2"]))
        short = mean_pool(jnp.concatenate([x, -x], axis=1)) if stride == 2 else x
        return jax.nn.relu(short + y), (first, second)

    def loss(params: Any, image: jax.Array, labels: jax.Array) -> tuple[jax.Array, Any]:
        x, moments = jax.nn.relu(conv(image, params["stem"])), []
        for i, p in enumerate(params["blocks"]):
            x, seen = run(f"layer{i // 2 + 1}/{i % 2}", basic, p, x)
            moments.append(seen)
        return log_loss(affine(params["fc"], x.mean((2, 3))), labels), moments

    def step(params: Any, velocity: Any, running: Any, image: jax.Array, labels: jax.Array) -> Any:
        (value, moments), grads = jax.value_and_grad(loss, has_aux=True)(params, image, labels)
        grads = jax.tree.map(lambda g, p: g + 1e-4 * p, grads, params)
        running = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, running, moments)
        return value, *momentum(params, grads, velocity), running

    sizes = [(16, 16), (16, 16), (16, 32), (32, 32), (32, 64), (64, 64)]
    norms = [{"n1": vectors(b), "n2": vectors(b)} for _, b in sizes]
    blocks = [{"w1": shape(b, a, 3, 3), "w2": shape(b, b, 3, 3)} | n for (a, b), n in zip(sizes, norms, strict=True)]
    params = {"stem": shape(16, 3, 3, 3), "blocks": blocks, "fc": matrix(64, 32)}
    running = [(vectors(b), vectors(b)) for _, b in sizes]
    return UnseenStep(step, (params, params, running, shape(16, 3, 32, 32), integers(16)), donate=(0, 1, 2))


def inception(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains Inception modules, whose four branches are concatenated along the channels."""
    run = Blocks(checkpoint, scopes)

    def module(p: Any, x: jax.Array) -> jax.Array:
        around = ((0, 0), (0, 0), (1, 1), (1, 1))
        pooled = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 1, 1), around)
        tall = conv(jax.nn.relu(conv(x, p["r7"])), p["c17"])
        branches = [conv(x, p["c1"]), conv(jax.nn.relu(conv(x, p["r3"])), p["c3"]), conv(tall, p["c71"])]
        joined = jnp.concatenate([*branches, conv(pooled, p["cp"])], axis=1)
        return jax.nn.relu(batch_norm(p["norm"], joined))

    def loss(params: Any, image: jax.Array, labels: jax.Array) -> jax.Array:
        x = jax.nn.relu(conv(image, params["stem"], 2))
        for letter, p in zip("abcde", params["mixed"], strict=True):
            x = run(f"Mixed_5{letter}", module, p, x)
        return log_loss(affine(params["head"], x.mean((2, 3))), labels)

    def step(params: Any, image: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, labels)
        return sgd(params, grads), value

    entry = {"c1": shape(12, 40, 1, 1), "r3": shape(8, 40, 1, 1), "c3": shape(12, 8, 3, 3), "r7": shape(8, 40, 1, 1)}
    entry |= {"c17": shape(8, 8, 1, 7), "c71": shape(8, 8, 7, 1), "cp": shape(8, 40, 1, 1), "norm": vectors(40)}
    params = {"stem": shape(40, 3, 3, 3), "mixed": [entry] * 5, "head": matrix(40, 32)}
    return UnseenStep(step, (params, shape(6, 3, 72, 72), integers(6)), donate=(0,))


def deep_supervision(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains dilated dense convolutions, with a predicted map at each depth in the loss."""
    run = Blocks(checkpoint, scopes)

    def dense_layer(p: Any, dilation: int, x: jax.Array) -> jax.Array:
        y = conv(jax.nn.elu(x), p["w"], dilation=dilation)
        return jnp.concatenate([x, y * channels(p["scale"], y)], axis=1)

    def loss(params: Any, image: jax.Array, expected: jax.Array) -> jax.Array:
        x, total = conv(image, params["stem"]), jnp.zeros(())
        for i, p in enumerate(params["layers"]):
            x = run(f"grow{i}", lambda p, x, d=2 ** (i % 3): dense_layer(p, d, x), p, x)
            drawn = jnp.einsum("bchw,c->bhw", x, p["draw"])
            total += 0.5 ** (len(params["layers"]) - 1 - i) * jnp.mean(jnp.abs(drawn - expected))
        return total

    def layer_weights(c: int) -> Any:
        return {"w": shape(8, c, 3, 3), "scale": shape(8), "draw": shape(c + 8)}

    params = {"stem": shape(8, 2, 3, 3), "layers": [layer_weights(8 + 8 * i) for i in range(6)]}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(4, 2, 64, 64), shape(4, 64, 64)))


def vae_fractional(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a beta variational autoencoder of strided and transposed convolutions."""
    run = Blocks(checkpoint, scopes)

    def inward(p: Any, x: jax.Array) -> jax.Array:
        return jax.nn.gelu(batch_norm(p["norm"], conv(jax.nn.gelu(conv(x, p["same"])), p["w"], 2)))

    def outward(p: Any, x: jax.Array) -> jax.Array:
        return jax.nn.gelu(batch_norm(p["norm"], conv(jax.nn.gelu(transposed_convolution(x, p["w"])), p["same"])))

    def loss(params: Any, image: jax.Array, raw: jax.Array) -> jax.Array:
        x = image
        for i, p in enumerate(params["inward"]):
            x = run(f"vae/enc{i}", inward, p, x)
        mean, spread = affine(params["mean"], x.reshape(len(x), -1)), affine(params["spread"], x.reshape(len(x), -1))
        deviation = jax.nn.softplus(spread) + 1e-3
        z = mean + deviation * jax.random.normal(jax.random.wrap_key_data(raw), mean.shape)
        y = affine(params["open"], z).reshape(x.shape)
        for i, p in enumerate(params["outward"]):
            y = run(f"vae/dec{i}", outward, p, y)
        divergence = jnp.mean(0.5 * (mean**2 + deviation**2 - 1.0) - jnp.log(deviation))
        return jnp.mean((conv(y, params["last"]) - image) ** 2) + 0.25 * divergence

    def step(params: Any, state: Any, image: jax.Array, raw: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, raw)
        return value, *adam(params, grads, state)

    ins = [
        {"same": shape(a, a, 3, 3), "w": shape(b, a, 3, 3), "norm": vectors(b)}
        for a, b in [(1, 16), (16, 32), (32, 32)]
    ]
    outs = [
        {"w": shape(b, a, 4, 4), "same": shape(b, b, 3, 3), "norm": vectors(b)}
        for a, b in [(32, 32), (32, 24), (24, 16)]
    ]
    flat = 32 * 8 * 8
    params = {"inward": ins, "mean": matrix(flat, 24), "spread": matrix(flat, 24), "open": matrix(24, flat)}
    params |= {"outward": outs, "last": shape(1, 16, 3, 3)}
    arguments = (params, adam_state(params), shape(16, 1, 64, 64), shape(2, dtype=jnp.uint32))
    return UnseenStep(step, arguments, donate=(0, 1))


STEPS = {
    "unet_separable": unet_separable,
    "convnext": convnext,
    "resnet_running": resnet_running,
    "inception": inception,
    "deep_supervision": deep_supervision,
    "vae_fractional": vae_fractional,
}
