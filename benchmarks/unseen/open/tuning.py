"""Steps with frozen weights, with routed experts, or with weights in a higher precision than the computation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.open.open_layers import (
    attend,
    cross_entropy,
    dense,
    layer_norm,
    linear,
    normed,
    rms_norm,
    split_heads,
)
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, sgd, shape


def switch_moe(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains attention layers with top-1 routed experts and a load-balancing loss."""
    run = Blocks(checkpoint, scopes)
    experts, capacity = 8, 48

    def route(p: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        probabilities = jax.nn.softmax(x @ p["router"])
        choice = jax.nn.one_hot(jnp.argmax(probabilities, axis=-1), experts)
        place = (jnp.cumsum(choice, axis=0) - 1.0) * choice
        dispatch = choice[..., None] * jax.nn.one_hot(place.astype(jnp.int32), capacity)
        inside = jnp.einsum("tec,td->ecd", dispatch, x)
        hidden = jax.nn.relu(jnp.einsum("ecd,edf->ecf", inside, p["up"]))
        outside = jnp.einsum("ecf,efd->ecd", hidden, p["down"])
        balance = experts * jnp.sum(choice.mean(0) * probabilities.mean(0))
        gate = jnp.max(probabilities, axis=-1)
        return jnp.einsum("tec,ecd->td", dispatch * gate[:, None, None], outside), balance

    def block(p: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = layer_norm(x, **p["n1"])
        q, k, v = (split_heads(y @ p[name], 4) for name in "qkv")
        x = x + attend(q, k, v, jnp.tril(jnp.ones((x.shape[1],) * 2)))
        y, balance = route(p, layer_norm(x, **p["n2"]).reshape(-1, x.shape[-1]))
        return x + y.reshape(x.shape), balance

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        x, extra = params["embed"][tokens], 0.0
        for i, p in enumerate(params["layers"]):
            x, balance = run(f"moe_layer{i}", block, p, x)
            extra = extra + 0.01 * balance
        return cross_entropy((x @ params["head"])[:, :-1], tokens[:, 1:]) + extra

    entry = {name: shape(48, 48) for name in "qkv"} | {"n1": normed(48), "n2": normed(48), "router": shape(48, experts)}
    entry |= {"up": shape(experts, 48, 96), "down": shape(experts, 96, 48)}
    params = {"embed": shape(256, 48), "layers": [entry] * 4, "head": shape(48, 256)}
    return UnseenStep(jax.value_and_grad(loss), (params, integers(4, 64)))


def lora_encoder(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains low-rank adapters (LoRA) of a frozen encoder."""
    run = Blocks(checkpoint, scopes)

    def adapted(w: jax.Array, a: Any, x: jax.Array) -> jax.Array:
        return x @ w + 2.0 * ((x @ a["down"]) @ a["up"])

    def block(p: Any, a: Any, x: jax.Array) -> jax.Array:
        y = layer_norm(x, **p["n1"])
        q, v = (split_heads(adapted(p[name], a[name], y), 4) for name in ("q", "v"))
        x = x + attend(q, split_heads(y @ p["k"], 4), v) @ p["o"]
        return x + jax.nn.relu(layer_norm(x, **p["n2"]) @ p["in"]) @ p["out"]

    def loss(adapters: Any, frozen: Any, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        x = frozen["embed"][tokens]
        for i, (p, a) in enumerate(zip(frozen["layers"], adapters, strict=True)):
            x = run(f"base_model/layers.{i}", block, p, a, x)
        return cross_entropy(x.mean(1) @ frozen["head"], labels)

    def step(adapters: Any, state: Any, frozen: Any, tokens: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(adapters, frozen, tokens, labels)
        return value, *adam(adapters, grads, state)

    entry = {name: shape(64, 64) for name in "qkvo"} | {"in": shape(64, 256), "out": shape(256, 64)}
    entry |= {"n1": normed(64), "n2": normed(64)}
    pair = {"down": shape(64, 4), "up": shape(4, 64)}
    adapters = [{"q": pair, "v": pair}] * 6
    frozen = {"embed": shape(200, 64), "layers": [entry] * 6, "head": shape(64, 32)}
    arguments = (adapters, adam_state(adapters), frozen, integers(8, 96), integers(8))
    return UnseenStep(step, arguments, donate=(0, 1))


def int8_frozen(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains scales and norms of a residual network with frozen int8 matrices."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, matrices: Any, x: jax.Array) -> jax.Array:
        up = matrices["up"].astype(jnp.float32) * p["up_scale"]
        down = matrices["down"].astype(jnp.float32) * p["down_scale"]
        return x + jax.nn.silu(rms_norm(x, p["norm"]) @ up) @ down

    def loss(params: Any, matrices: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        for i, (p, m) in enumerate(zip(params, matrices, strict=True)):
            x = run(f"Int8Block_{i}", block, p, m, x)
        return jnp.mean(jnp.abs(x - target))

    def step(params: Any, matrices: Any, x: jax.Array, target: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, matrices, x, target)
        return value, sgd(params, grads)

    params = [{"up_scale": shape(320), "down_scale": shape(80), "norm": shape(80)}] * 7
    matrices = [{"up": shape(80, 320, dtype=jnp.int8), "down": shape(320, 80, dtype=jnp.int8)}] * 7
    return UnseenStep(step, (params, matrices, shape(1024, 80), shape(1024, 80)), donate=(0,))


def bf16_masters(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains in bf16 from f32 master weights, with loss scaling."""
    run = Blocks(checkpoint, scopes)

    def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
        return rms_norm(x.astype(jnp.float32), scale.astype(jnp.float32)).astype(jnp.bfloat16)

    def block(p: Any, x: jax.Array) -> jax.Array:
        y = norm(x, p["n1"])
        q, k, v = (split_heads(dense(p[name], y), 4) for name in "qkv")
        x = x + attend(q, k, v).astype(jnp.bfloat16)
        return x + dense(p["out"], jax.nn.gelu(dense(p["in"], norm(x, p["n2"]))))

    def loss(masters: Any, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        params = jax.tree.map(lambda a: a.astype(jnp.bfloat16), masters)
        x = params["embed"][tokens]
        for i, p in enumerate(params["layers"]):
            x = run(f"h{i}", block, p, x)
        return 128.0 * cross_entropy(x @ params["embed"].T, labels)

    def step(masters: Any, state: Any, tokens: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(masters, tokens, labels)
        grads = jax.tree.map(lambda g: g / 128.0, grads)
        return value / 128.0, *adam(masters, grads, state)

    entry = {name: linear(64, 64) for name in "qkv"} | {"in": linear(64, 256), "out": linear(256, 64)}
    entry |= {"n1": shape(64), "n2": shape(64)}
    masters = {"embed": shape(384, 64), "layers": [entry] * 6}
    return UnseenStep(step, (masters, adam_state(masters), integers(8, 128), integers(8, 128)), donate=(0, 1))


STEPS = {
    "switch_moe": switch_moe,
    "lora_encoder": lora_encoder,
    "int8_frozen": int8_frozen,
    "bf16_masters": bf16_masters,
}
