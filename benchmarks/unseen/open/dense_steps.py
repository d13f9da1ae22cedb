"""Steps that train networks of matrix products and elementwise functions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.open.open_layers import cross_entropy, dense, layer_norm, linear, normed
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, integers, key_data, momentum, sgd, shape


def odd_mlp(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains an MLP of seven layers, all with different widths and activations."""
    run = Blocks(checkpoint, scopes)
    widths = [40, 96, 64, 150, 33, 80, 120, 10]
    activations = [jax.nn.relu, jnp.tanh, jax.nn.gelu, jax.nn.softplus, jax.nn.elu, jax.nn.hard_tanh, jax.nn.silu]

    def loss(params: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        for i, (p, act) in enumerate(zip(params, activations, strict=True), 1):
            x = run(f"fc{i}", lambda p, x, act=act: act(dense(p, x)), p, x)
        return jnp.mean((x - target) ** 2)

    params = [linear(a, b) for a, b in pairwise(widths)]
    return UnseenStep(jax.value_and_grad(loss), (params, shape(4096, 40), shape(4096, 10)))


def mixer_rbg(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains an MLP-Mixer over patches, with dropout from rbg keys."""
    run = Blocks(checkpoint, scopes)

    def mlp(p: Any, x: jax.Array) -> jax.Array:
        return dense(p["out"], jax.nn.gelu(dense(p["in"], x)))

    def block(p: Any, x: jax.Array, key: jax.Array) -> jax.Array:
        y = mlp(p["tokens"], layer_norm(x, **p["n1"]).swapaxes(1, 2)).swapaxes(1, 2)
        kept = jax.random.bernoulli(key, 0.85, y.shape)
        x = x + jnp.where(kept, y / 0.85, 0.0)
        return x + mlp(p["channels"], layer_norm(x, **p["n2"]))

    def loss(params: Any, patches: jax.Array, labels: jax.Array, raw: jax.Array) -> jax.Array:
        keys = jax.random.split(jax.random.wrap_key_data(raw, impl="rbg"), len(params["blocks"]))
        x = dense(params["stem"], patches)
        for i, p in enumerate(params["blocks"]):
            x = run(f"MixerBlock_{i}", block, p, x, keys[i])
        return cross_entropy(dense(params["head"], x.mean(1)), labels)

    def step(params: Any, velocity: Any, patches: jax.Array, labels: jax.Array, raw: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, patches, labels, raw)
        return value, *momentum(params, grads, velocity, 0.05)

    entry = {"tokens": {"in": linear(100, 64), "out": linear(64, 100)}, "n1": normed(72), "n2": normed(72)}
    entry |= {"channels": {"in": linear(72, 288), "out": linear(288, 72)}}
    params = {"stem": linear(75, 72), "blocks": [entry] * 6, "head": linear(72, 40)}
    return UnseenStep(step, (params, params, shape(8, 100, 75), integers(8), key_data(4)), donate=(0, 1))


def hypernetwork(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a small network that generates the weights of each layer from an embedding."""
    run = Blocks(checkpoint, scopes)

    def block(shared: Any, embedding: jax.Array, x: jax.Array) -> jax.Array:
        hidden = jnp.tanh(dense(shared["first"], embedding))
        made = dense(shared["second"], hidden)
        w, b = made[: 48 * 48].reshape(48, 48), made[48 * 48 :]
        return x + jnp.sin(x @ w + b)

    def loss(params: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        x = dense(params["stem"], x)
        for i, embedding in enumerate(params["embeddings"]):
            x = run(f"hyper/layer{i:02d}", block, params["shared"], embedding, x)
        return jnp.mean((dense(params["head"], x) - target) ** 2)

    shared = {"first": linear(8, 24), "second": linear(24, 48 * 49)}
    params = {"stem": linear(2, 48), "embeddings": [shape(8)] * 8, "shared": shared, "head": linear(48, 3)}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(4096, 2), shape(4096, 3)))


def tensor_train(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains layers whose matrix is a tensor train of three small cores."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        cube = x.reshape(-1, 4, 8, 4)
        y = jnp.einsum("nabc,aip->nbcip", cube, p["g1"])
        y = jnp.einsum("nbcip,pbjq->ncijq", y, p["g2"])
        y = jnp.einsum("ncijq,qck->nijk", y, p["g3"])
        return x + jax.nn.relu(y.reshape(x.shape) + p["b"])

    def loss(params: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
        for i, p in enumerate(params["layers"]):
            x = run(f"tt_{i}", block, p, x)
        return cross_entropy(dense(params["head"], x), labels)

    def step(params: Any, x: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, labels)
        return value, sgd(params, grads)

    entry = {"g1": shape(4, 4, 5), "g2": shape(5, 8, 8, 5), "g3": shape(5, 4, 4), "b": shape(128)}
    return UnseenStep(step, ({"layers": [entry] * 6, "head": linear(128, 32)}, shape(512, 128), integers(512)))


def sine_chain(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step with ten blocks of elementwise functions, which also returns the gradient of the input."""
    run = Blocks(checkpoint, scopes)

    def link(a: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(jnp.cos(jnp.exp(jnp.sin(x * a[0]) * a[1]) + a[2]))

    def loss(scales: Any, x: jax.Array) -> jax.Array:
        for i, a in enumerate(scales):
            x = run(f"link_{i}", link, a, x)
        return jnp.mean(x * x)

    return UnseenStep(jax.value_and_grad(loss, argnums=(0, 1)), ([shape(3)] * 10, shape(512, 512)))


def loop_in_scope(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains eight residual layers in a Python loop inside one scope, `backbone`."""
    run = Blocks(checkpoint, scopes)

    def layer(p: Any, x: jax.Array) -> jax.Array:
        return x + dense(p["out"], jax.nn.relu(dense(p["in"], layer_norm(x, **p["norm"]))))

    def loss(params: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        with run.scope("backbone"):
            for p in params["layers"]:
                x = run.wrap(layer)(p, x)
        with run.scope("head"):
            return jnp.mean((dense(params["head"], x) - target) ** 2)

    entry = {"in": linear(64, 192), "out": linear(192, 64), "norm": normed(64)}
    params = {"layers": [entry] * 8, "head": linear(64, 5)}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(2048, 64), shape(2048, 5)))


def jitted_helper_twice(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains six blocks that each call the same jitted function twice."""
    run = Blocks(checkpoint, scopes)

    @jax.jit
    def _gelu(x: jax.Array) -> jax.Array:
        return 0.5 * x * (1.0 + jnp.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    def block(p: Any, x: jax.Array) -> jax.Array:
        y = _gelu(dense(p["first"], x))
        return layer_norm(x + dense(p["third"], _gelu(dense(p["second"], y))), **p["norm"])

    def loss(params: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
        for i, p in enumerate(params["blocks"]):
            x = run(f"trunk/ff{i}", block, p, x)
        return cross_entropy(dense(params["head"], x), labels)

    def step(params: Any, x: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, labels)
        return value, sgd(params, grads)

    entry = {"first": linear(56, 160), "second": linear(160, 160), "third": linear(160, 56), "norm": normed(56)}
    params = {"blocks": [entry] * 6, "head": linear(56, 32)}
    return UnseenStep(step, (params, shape(2048, 56), integers(2048)), donate=(0,))


def swish_custom_jvp(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains maxout layers with a swish whose derivative is defined by `custom_jvp`."""
    run = Blocks(checkpoint, scopes)

    @jax.custom_jvp
    def swish(x: jax.Array) -> jax.Array:
        return x * jax.nn.sigmoid(x)

    @swish.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (dx,) = primals, tangents
        gate = jax.nn.sigmoid(x)
        return x * gate, (gate + x * gate * (1 - gate)) * dx

    def block(p: Any, x: jax.Array) -> jax.Array:
        pieces = dense(p["wide"], x).reshape(x.shape[0], -1, 3).max(axis=-1)
        return x + dense(p["back"], swish(pieces))

    def loss(params: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        for i, p in enumerate(params):
            x = run(f"maxout{i}", block, p, x)
        return jnp.sum(jnp.logaddexp(x - target, target - x)) / x.size

    params = [{"wide": linear(48, 288), "back": linear(96, 48)}] * 7
    return UnseenStep(jax.value_and_grad(loss), (params, shape(1536, 48), shape(1536, 48)))


STEPS = {
    "odd_mlp": odd_mlp,
    "mixer_rbg": mixer_rbg,
    "hypernetwork": hypernetwork,
    "tensor_train": tensor_train,
    "sine_chain": sine_chain,
    "loop_in_scope": loop_in_scope,
    "jitted_helper_twice": jitted_helper_twice,
    "swish_custom_jvp": swish_custom_jvp,
}
