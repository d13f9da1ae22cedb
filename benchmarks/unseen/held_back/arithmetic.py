"""Steps with low-precision arithmetic, hand-written derivatives, and frozen or factored weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from recompute.benchmarks.unseen.held_back.layers import (
    affine,
    attention,
    batch_norm,
    conv,
    layer_norm,
    log_loss,
    matrix,
    vectors,
)
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, momentum, sgd, shape


def learned_steps(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains four-bit weights and activations with learned quantization steps (`custom_vjp`)."""
    run = Blocks(checkpoint, scopes)

    @jax.custom_vjp
    def quantise(x: jax.Array, size: jax.Array) -> jax.Array:
        return jnp.round(jnp.clip(x / size, -8.0, 7.0)) * size

    def forward(x: jax.Array, size: jax.Array) -> Any:
        return quantise(x, size), (x, size)

    def backward(saved: Any, g: jax.Array) -> Any:
        x, size = saved
        scaled = x / size
        inside = jnp.abs(scaled + 0.5) <= 7.5
        slope = jnp.where(inside, jnp.round(scaled) - scaled, jnp.clip(scaled, -8.0, 7.0))
        return jnp.where(inside, g, 0.0), jnp.sum(g * slope) / jnp.sqrt(x.size * 7.0)

    quantise.defvjp(forward, backward)

    def product(p: Any, x: jax.Array) -> jax.Array:
        return quantise(x, 0.01 + jnp.abs(p["ax"])) @ quantise(p["w"], 0.01 + jnp.abs(p["aw"]))

    def block(p: Any, x: jax.Array) -> jax.Array:
        q, k, v = jnp.split(product(p["qkv"], layer_norm(p["n1"], x)), 3, axis=-1)
        x = x + product(p["mix"], attention(q, k, v, 4))
        return x + product(p["down"], jax.nn.relu(product(p["up"], layer_norm(p["n2"], x))))

    def loss(params: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
        for i, p in enumerate(params["layers"]):
            x = run(f"quantised/{i}", block, p, x)
        return log_loss(affine(params["head"], x), labels)

    def step(params: Any, state: Any, x: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, labels)
        return value, *adam(params, grads, state)

    def quantised(a: int, b: int) -> Any:
        return {"w": shape(a, b), "aw": shape(), "ax": shape()}

    entry = {"qkv": quantised(48, 144), "mix": quantised(48, 48), "up": quantised(48, 144), "down": quantised(144, 48)}
    params = {"layers": [entry | {"n1": vectors(48), "n2": vectors(48)}] * 4, "head": matrix(48, 32)}
    return UnseenStep(step, (params, adam_state(params), shape(8, 64, 48), integers(8, 64)), donate=(0, 1))


def int8_products(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that multiplies in int8 with int32 sums, and uses the gradient of the float product."""
    run = Blocks(checkpoint, scopes)

    def to_int8(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        scale = jnp.max(jnp.abs(x), axis=-1, keepdims=True) / 127.0 + 1e-9
        return jnp.round(x / scale).astype(jnp.int8), scale

    def product(x: jax.Array, w: jax.Array) -> jax.Array:
        (xq, xs), (wq, ws) = to_int8(x), to_int8(w.T)
        whole = lax.dot_general(xq, wq, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32)
        smooth = x @ w
        return smooth + lax.stop_gradient(whole.astype(jnp.float32) * xs * ws.T - smooth)

    def block(p: Any, x: jax.Array) -> jax.Array:
        y = jax.nn.gelu(product(layer_norm(p["norm"], x), p["up"]))
        return x + product(y, p["down"])

    def loss(params: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        for i, p in enumerate(params):
            x = run(f"mlp.{i}.int8", block, p, x)
        return jnp.mean((x - target) ** 2)

    def step(params: Any, velocity: Any, x: jax.Array, target: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, target)
        return value, *momentum(params, grads, velocity)

    params = [{"up": shape(64, 160), "down": shape(160, 64), "norm": vectors(64)}] * 6
    return UnseenStep(step, (params, params, shape(1200, 64), shape(1200, 64)), donate=(0, 1))


def norm_by_hand(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains gated blocks, with hand-written gradients for layer norm and cross entropy."""
    run = Blocks(checkpoint, scopes)

    @jax.custom_vjp
    def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
        return forward(x, scale)[0]

    def forward(x: jax.Array, scale: jax.Array) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        inverse = lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-6)
        unit = centred * inverse
        return unit * scale, (unit, inverse, scale)

    def backward(saved: Any, g: jax.Array) -> Any:
        unit, inverse, scale = saved
        inner = g * scale
        pulled = inner - inner.mean(-1, keepdims=True) - unit * jnp.mean(inner * unit, -1, keepdims=True)
        return pulled * inverse, jnp.sum(g * unit, axis=tuple(range(g.ndim - 1)))

    norm.defvjp(forward, backward)

    @jax.custom_vjp
    def entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
        return log_loss(logits, labels)

    def entropy_back(saved: Any, g: jax.Array) -> Any:
        logits, labels = saved
        return g * (jax.nn.softmax(logits) - jax.nn.one_hot(labels, logits.shape[-1])) / len(labels), None

    entropy.defvjp(lambda logits, labels: (log_loss(logits, labels), (logits, labels)), entropy_back)

    def block(p: Any, x: jax.Array) -> jax.Array:
        y = norm(x, p["s1"])
        y = norm(jax.nn.sigmoid(y @ p["gate"]) * jnp.tanh(y @ p["value"]), p["s2"])
        return x + y @ p["out"]

    def loss(params: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
        for i, p in enumerate(params["blocks"]):
            x = run(f"GatedUnit_{i}", block, p, x)
        return entropy(affine(params["head"], x), labels)

    entry = {"s1": shape(50), "s2": shape(130), "gate": shape(50, 130), "value": shape(50, 130), "out": shape(130, 50)}
    params = {"blocks": [entry] * 6, "head": matrix(50, 64)}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(1800, 50), integers(1800)))


def lora_convolutions(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains low-rank convolutions, which are added to a frozen convolutional network."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, a: Any, x: jax.Array) -> jax.Array:
        y = conv(x, p["w"]) + conv(conv(x, a["thin"]), a["back"])
        return x + jax.nn.silu(batch_norm(p["norm"], y))

    def loss(adapters: Any, frozen: Any, image: jax.Array, labels: jax.Array) -> jax.Array:
        x = conv(image, frozen["stem"])
        for i, (p, a) in enumerate(zip(frozen["blocks"], adapters["blocks"], strict=True)):
            x = run(f"frozen_block{i}", block, p, a, x)
        return log_loss(affine(adapters["head"], x.mean((2, 3))), labels)

    def step(adapters: Any, frozen: Any, image: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(adapters, frozen, image, labels)
        return value, sgd(adapters, grads, 0.1)

    adapters = {"blocks": [{"thin": shape(2, 24, 3, 3), "back": shape(24, 2, 1, 1)}] * 6, "head": matrix(24, 32)}
    frozen = {"stem": shape(24, 3, 3, 3), "blocks": [{"w": shape(24, 24, 3, 3), "norm": vectors(24)}] * 6}
    return UnseenStep(step, (adapters, frozen, shape(4, 3, 56, 56), integers(4)), donate=(0,))


def tensor_ring(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains layers whose matrix is contracted from four tensor-ring cores and used twice."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        w = jnp.einsum("abc,cde,efg,gha->bdfh", *p["cores"]).reshape(64, 64)
        y = jnp.einsum("nti,ij->ntj", x, w)
        y = jax.nn.gelu(y + p["b"])
        return x + jnp.einsum("ntj,ij->nti", y, w) + jnp.einsum("nti,ts->nsi", y, p["time"])

    def loss(params: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        for i, p in enumerate(params):
            x = run(f"ring{i}", block, p, x)
        return jnp.mean(jnp.abs(x - target) ** 1.5)

    entry = {"cores": [shape(4, 8, 4)] * 4, "b": shape(64), "time": shape(40, 40)}
    return UnseenStep(jax.value_and_grad(loss), ([entry] * 6, shape(40, 40, 64), shape(40, 40, 64)))


STEPS = {
    "learned_steps": learned_steps,
    "int8_products": int8_products,
    "norm_by_hand": norm_by_hand,
    "lora_convolutions": lora_convolutions,
    "tensor_ring": tensor_ring,
}
