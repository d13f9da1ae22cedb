"""Steps that train networks of two-dimensional convolutions."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.open.open_layers import (
    avg_pool,
    batch_norm,
    conv,
    cross_entropy,
    dense,
    group_norm,
    linear,
    max_pool,
    normed,
    upconv,
)
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, momentum, sgd, shape


def unet_transposed(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a U-Net with max pooling on the way down and transposed convolutions on the way up."""
    run = Blocks(checkpoint, scopes)
    widths = [12, 24, 48]

    def twice(p: Any, x: jax.Array) -> jax.Array:
        for w, n in zip(p["convs"], p["norms"], strict=True):
            x = jax.nn.relu(batch_norm(conv(x, w), n["scale"], n["shift"]))
        return x

    def down(p: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = twice(p, x)
        return max_pool(x), x

    def up(p: Any, x: jax.Array, skip: jax.Array) -> jax.Array:
        return twice(p, jnp.concatenate([skip, upconv(x, p["resize"])], axis=-1))

    def loss(params: Any, image: jax.Array, target: jax.Array) -> jax.Array:
        x, skips = image, []
        for i, p in enumerate(params["down"], 1):
            x, skip = run(f"down{i}", down, p, x)
            skips.append(skip)
        x = run("bottleneck", twice, params["bottom"], x)
        for i, p in reversed(list(enumerate(params["up"], 1))):
            x = run(f"up{i}", up, p, x, skips.pop())
        logits = conv(x, params["head"])
        return jnp.mean(jax.nn.softplus(logits) - target * logits)

    def step(params: Any, velocity: Any, image: jax.Array, target: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, target)
        return value, momentum(params, grads, velocity)

    def pair(inputs: int, outputs: int) -> Any:
        return {"convs": [shape(3, 3, inputs, outputs), shape(3, 3, outputs, outputs)], "norms": [normed(outputs)] * 2}

    params = {
        "down": [pair(a, b) for a, b in zip([3, *widths], widths, strict=False)],
        "bottom": pair(widths[-1], 96),
        "up": [pair(2 * a, a) | {"resize": shape(2, 2, b, a)} for a, b in zip(widths, [24, 48, 96], strict=True)],
        "head": shape(1, 1, widths[0], 1),
    }
    return UnseenStep(step, (params, params, shape(6, 64, 64, 3), shape(6, 64, 64, 1)), donate=(0, 1))


def mobilenet(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains MobileNet, whose inverted residual blocks contain squeeze-and-excitation gates."""
    run = Blocks(checkpoint, scopes)
    plan = [(16, 16, 1), (16, 24, 2), (24, 24, 1), (24, 24, 1), (24, 40, 2), (40, 40, 1), (40, 40, 1)]

    def block(p: Any, x: jax.Array, *, stride: int) -> jax.Array:
        y = jax.nn.relu6(batch_norm(conv(x, p["widen"]), **p["n1"]))
        y = jax.nn.relu6(batch_norm(conv(y, p["depth"], stride, groups=y.shape[-1]), **p["n2"]))
        gate = jax.nn.sigmoid(dense(p["excite"], jax.nn.relu(dense(p["squeeze"], y.mean((1, 2))))))
        y = batch_norm(conv(y * gate[:, None, None, :], p["narrow"]), **p["n3"])
        return x + y if x.shape == y.shape else y

    def loss(params: Any, image: jax.Array, labels: jax.Array) -> jax.Array:
        x = jax.nn.relu6(conv(image, params["stem"], 2))
        for i, (p, (_, _, stride)) in enumerate(zip(params["blocks"], plan, strict=True)):
            x = run(f"features/{i}", partial(block, stride=stride), p, x)
        return cross_entropy(dense(params["head"], x.mean((1, 2))), labels)

    def step(params: Any, state: Any, image: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, labels)
        return value, *adam(params, grads, state)

    def weights(inputs: int, outputs: int) -> Any:
        wide = 4 * inputs
        return {
            "widen": shape(1, 1, inputs, wide),
            "depth": shape(3, 3, 1, wide),
            "squeeze": linear(wide, wide // 4),
            "excite": linear(wide // 4, wide),
            "narrow": shape(1, 1, wide, outputs),
        } | {"n1": normed(wide), "n2": normed(wide), "n3": normed(outputs)}

    params = {
        "stem": shape(3, 3, 3, 16),
        "blocks": [weights(a, b) for a, b, _ in plan],
        "head": linear(40, 100),
    }
    return UnseenStep(step, (params, adam_state(params), shape(8, 96, 96, 3), integers(8)), donate=(0, 1))


def resnet_group_norm(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a ResNet with group normalization, with scopes inside the checkpointed blocks."""
    run = Blocks(checkpoint, scopes, inside=True)
    widths = [32, 32, 64, 64, 128, 128]

    def block(p: Any, x: jax.Array) -> jax.Array:
        stride = 2 if p["c3"].shape[-1] != x.shape[-1] else 1
        y = jax.nn.relu(group_norm(conv(x, p["c1"]), **p["n1"], groups=4))
        y = jax.nn.relu(group_norm(conv(y, p["c2"], stride), **p["n2"], groups=4))
        y = group_norm(conv(y, p["c3"]), **p["n3"], groups=8)
        if "short" in p:
            x = conv(x, p["short"], stride)
        return jax.nn.relu(x + y)

    def loss(params: Any, image: jax.Array, labels: jax.Array) -> jax.Array:
        x = conv(image, params["stem"])
        for i, p in enumerate(params["blocks"]):
            x = run(f"ResBlock_{i}", block, p, x)
        return cross_entropy(dense(params["head"], x.mean((1, 2))), labels)

    def weights(inputs: int, outputs: int) -> Any:
        thin = outputs // 4
        convs = {"c1": shape(1, 1, inputs, thin), "c2": shape(3, 3, thin, thin), "c3": shape(1, 1, thin, outputs)}
        norms = {"n1": normed(thin), "n2": normed(thin), "n3": normed(outputs)}
        return convs | norms | ({"short": shape(1, 1, inputs, outputs)} if inputs != outputs else {})

    params = {
        "stem": shape(3, 3, 3, 32),
        "blocks": [weights(a, b) for a, b in zip([32, *widths], widths, strict=False)],
        "head": linear(128, 40),
    }
    return UnseenStep(jax.value_and_grad(loss), (params, shape(8, 48, 48, 3), integers(8)))


def densenet(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a DenseNet of two dense blocks with average pooling between them."""
    run = Blocks(checkpoint, scopes)
    growth, layers = 12, 4

    def layer(p: Any, *features: jax.Array) -> jax.Array:
        x = jnp.concatenate(features, axis=-1)
        x = conv(jax.nn.relu(batch_norm(x, **p["n1"])), p["c1"])
        return conv(jax.nn.relu(batch_norm(x, **p["n2"])), p["c2"])

    def transition(p: Any, *features: jax.Array) -> jax.Array:
        x = jnp.concatenate(features, axis=-1)
        return avg_pool(conv(jax.nn.relu(batch_norm(x, **p["norm"])), p["conv"]))

    def loss(params: Any, image: jax.Array, labels: jax.Array) -> jax.Array:
        x = conv(image, params["stem"])
        for b, stage in enumerate(params["stages"], 1):
            features = [x]
            for i, p in enumerate(stage["layers"], 1):
                features.append(run(f"denseblock{b}/layer{i}", layer, p, *features))
            x = run(f"transition{b}", transition, stage["transition"], *features)
        return cross_entropy(dense(params["head"], x.mean((1, 2))), labels)

    def step(params: Any, image: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, labels)
        return value, sgd(params, grads)

    def weights(inputs: int) -> Any:
        wide = 4 * growth
        convs = {"c1": shape(1, 1, inputs, wide), "c2": shape(3, 3, wide, growth)}
        return convs | {"n1": normed(inputs), "n2": normed(wide)}

    def stage(inputs: int) -> Any:
        total = inputs + layers * growth
        change = {"norm": normed(total), "conv": shape(1, 1, total, total // 2)}
        return {"layers": [weights(inputs + i * growth) for i in range(layers)], "transition": change}

    params = {"stem": shape(3, 3, 3, 24), "stages": [stage(24), stage(36)], "head": linear(42, 64)}
    return UnseenStep(step, (params, shape(6, 48, 48, 3), integers(6)))


def fake_quant_convnet(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a convolutional network with rounded weights and straight-through gradients."""
    run = Blocks(checkpoint, scopes)

    def quantise(x: jax.Array, bits: int = 8) -> jax.Array:
        step = jax.lax.stop_gradient(jnp.max(jnp.abs(x))) / (2 ** (bits - 1) - 1) + 1e-8
        return x + jax.lax.stop_gradient(jnp.round(x / step) * step - x)

    def block(p: Any, x: jax.Array) -> jax.Array:
        y = conv(quantise(x), quantise(p["w1"]))
        y = jax.nn.relu(batch_norm(y, **p["n1"]))
        y = conv(quantise(y), quantise(p["w2"], 4))
        return jax.nn.relu(x + batch_norm(y, **p["n2"]))

    def loss(params: Any, image: jax.Array, target: jax.Array) -> jax.Array:
        x = conv(image, params["stem"])
        for i, p in enumerate(params["blocks"]):
            x = run(f"qblock_{i}", block, p, x)
        return jnp.mean((conv(x, params["head"]) - target) ** 2)

    def step(params: Any, velocity: Any, image: jax.Array, target: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, target)
        return momentum(params, grads, velocity), value

    entry = {"w1": shape(3, 3, 16, 16), "w2": shape(3, 3, 16, 16), "n1": normed(16), "n2": normed(16)}
    params = {"stem": shape(3, 3, 3, 16), "blocks": [entry] * 6, "head": shape(3, 3, 16, 3)}
    return UnseenStep(step, (params, params, shape(4, 64, 64, 3), shape(4, 64, 64, 3)), donate=(0, 1))


STEPS = {
    "unet_transposed": unet_transposed,
    "mobilenet": mobilenet,
    "resnet_group_norm": resnet_group_norm,
    "densenet": densenet,
    "fake_quant_convnet": fake_quant_convnet,
}
