"""Steps whose gradients are computed inside a loop over microbatches, or inside a `shard_map`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec

from recompute.benchmarks.unseen.open.open_layers import (
    attend,
    batch_norm,
    conv,
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
    momentum,
    sgd,
    shape,
)


def residual(p: Any, x: jax.Array) -> jax.Array:
    return x + dense(p["out"], jax.nn.gelu(dense(p["in"], layer_norm(x, **p["norm"]))))


def residual_weights(width: int, wide: int) -> Any:
    return {"norm": normed(width), "in": linear(width, wide), "out": linear(wide, width)}


def decoder(p: Any, x: jax.Array) -> jax.Array:
    y = layer_norm(x, **p["before"])
    q, k, v = (split_heads(y @ p[name], 4) for name in "qkv")
    x = x + attend(q, k, v, jnp.tril(jnp.ones((x.shape[1],) * 2, x.dtype)))
    return residual(p, x)


def decoder_weights(width: int) -> Any:
    mixing = {name: shape(width, width) for name in "qkv"}
    return residual_weights(width, 4 * width) | mixing | {"before": normed(width)}


def zeros_like(params: Any) -> Any:
    return jax.tree.map(jnp.zeros_like, params)


def add(a: Any, b: Any) -> Any:
    return jax.tree.map(jnp.add, a, b)


def accumulate_scan_mlp(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a residual network with the mean gradient of four microbatches in a `scan`."""
    run = Blocks(checkpoint, scopes)

    def loss(params: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        for i, p in enumerate(params):
            x = run(f"res{i}", residual, p, x)
        return jnp.mean((x - target) ** 2)

    def step(params: Any, state: Any, xs: jax.Array, targets: jax.Array) -> Any:
        def body(carry: Any, batch: Any) -> Any:
            total, grads = carry
            value, new = jax.value_and_grad(loss)(params, *batch)
            return (total + value, add(grads, new)), None

        (total, grads), _ = lax.scan(body, (0.0, zeros_like(params)), (xs, targets))
        return total / 4, *adam(params, jax.tree.map(lambda g: g / 4, grads), state)

    params = [residual_weights(64, 192)] * 6
    batch = (shape(4, 1024, 64), shape(4, 1024, 64))
    return UnseenStep(step, (params, adam_state(params), *batch), donate=(0, 1))


def accumulate_fori_conv(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step with a `fori_loop` over slices of the batch, which trains a convolutional network."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        return x + conv(jax.nn.relu(batch_norm(conv(x, p["w1"]), **p["norm"])), p["w2"])

    def loss(params: Any, image: jax.Array, labels: jax.Array) -> jax.Array:
        x = conv(image, params["stem"])
        for i, p in enumerate(params["blocks"]):
            x = run(f"stage1/unit{i}", block, p, x)
        return cross_entropy(dense(params["head"], x.mean((1, 2))), labels)

    def step(params: Any, image: jax.Array, labels: jax.Array) -> Any:
        def body(i: jax.Array, grads: Any) -> Any:
            part = lax.dynamic_slice_in_dim(image, 4 * i, 4), lax.dynamic_slice_in_dim(labels, 4 * i, 4)
            return add(grads, jax.grad(loss)(params, *part))

        return sgd(params, lax.fori_loop(0, 3, body, zeros_like(params)), 0.003)

    entry = {"w1": shape(3, 3, 16, 32), "w2": shape(3, 3, 32, 16), "norm": normed(32)}
    params = {"stem": shape(3, 3, 3, 16), "blocks": [entry] * 5, "head": linear(16, 32)}
    return UnseenStep(step, (params, shape(12, 48, 48, 3), integers(12)), donate=(0,))


def accumulate_scan_gpt(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step with a `scan` over microbatches, which trains a GPT with bf16 weights and f32 gradients."""
    run = Blocks(checkpoint, scopes, inside=True)

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        low = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
        x = low["embed"][tokens]
        for i, p in enumerate(low["layers"]):
            x = run(f"layers_{i}", decoder, p, x)
        return cross_entropy((x @ low["embed"].T).astype(jnp.float32)[:, :-1], tokens[:, 1:])

    def step(params: Any, velocity: Any, tokens: jax.Array) -> Any:
        def body(grads: Any, part: jax.Array) -> Any:
            value, new = jax.value_and_grad(loss)(params, part)
            return add(grads, new), value

        grads, values = lax.scan(body, zeros_like(params), tokens)
        return values.mean(), *momentum(params, grads, velocity)

    params = {"embed": shape(200, 64), "layers": [decoder_weights(64)] * 5}
    return UnseenStep(step, (params, params, integers(4, 4, 96)), donate=(0, 1))


def accumulate_fori_dropout(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step with a `fori_loop` that folds its index into dropout keys, and carries loss and gradients."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array, key: jax.Array) -> jax.Array:
        return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), residual(p, x) / 0.9, 0.0)

    def loss(params: Any, x: jax.Array, target: jax.Array, key: jax.Array) -> jax.Array:
        for i, p in enumerate(params):
            x = run(f"dropped/{i}", block, p, x, jax.random.fold_in(key, i))
        return jnp.mean(jnp.abs(x - target))

    def step(params: Any, xs: jax.Array, targets: jax.Array, raw: jax.Array) -> Any:
        key = jax.random.wrap_key_data(raw)

        def body(i: jax.Array, carry: Any) -> Any:
            return add(carry, jax.value_and_grad(loss)(params, xs[i], targets[i], jax.random.fold_in(key, i)))

        value, grads = lax.fori_loop(0, 4, body, (jnp.zeros(()), zeros_like(params)))
        return value / 4, sgd(params, grads)

    batch = (shape(4, 800, 48), shape(4, 800, 48))
    return UnseenStep(step, ([residual_weights(48, 144)] * 6, *batch, key_data()))


def mapped(devices: int, checkpoint: bool, scopes: bool) -> UnseenStep:
    run = Blocks(checkpoint, scopes)
    mesh = jax.make_mesh((devices,), ("data",), axis_types=(AxisType.Auto,), devices=jax.devices()[:devices])
    whole, split = PartitionSpec(), PartitionSpec("data")

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        x = params["embed"][tokens]
        for i, p in enumerate(params["layers"]):
            x = run(f"decoder/block_{i}", decoder, p, x)
        return cross_entropy((x @ params["embed"].T)[:, :-1], tokens[:, 1:])

    def local(params: Any, tokens: jax.Array) -> Any:
        return lax.pmean(jax.value_and_grad(loss)(params, tokens), "data")

    def step(params: Any, tokens: jax.Array) -> Any:
        # With check_vma=False, gradients are local, and only `pmean` combines them.
        both = jax.shard_map(local, mesh=mesh, in_specs=(whole, split), out_specs=whole, check_vma=False)
        value, grads = both(params, tokens)
        return value, sgd(params, grads)

    params = {"embed": shape(150, 64), "layers": [decoder_weights(64)] * 4}
    return UnseenStep(step, (params, integers(8, 80)))


def shard_map_one(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that computes a decoder's gradients inside a `shard_map` over one device."""
    return mapped(1, checkpoint, scopes)


def shard_map_two(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that computes a decoder's gradients inside a `shard_map` over two devices."""
    return mapped(2, checkpoint, scopes)


LOOPS: dict[str, Builder] = {
    "accumulate_scan_mlp": accumulate_scan_mlp,
    "accumulate_fori_conv": accumulate_fori_conv,
    "accumulate_scan_gpt": accumulate_scan_gpt,
    "accumulate_fori_dropout": accumulate_fori_dropout,
    "shard_map_one": shard_map_one,
    "shard_map_two": shard_map_two,
}
