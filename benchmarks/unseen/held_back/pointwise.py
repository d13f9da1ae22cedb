"""Steps with matrices, elementwise functions, gates and mixtures."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from recompute.benchmarks.unseen.held_back.layers import affine, attention, layer_norm, log_loss, matrix, vectors
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, momentum, sgd, shape


def unlike_layers(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains nine different layers, whose scope names have no numbers."""
    run = Blocks(checkpoint, scopes)

    def gate(p: Any, x: jax.Array) -> jax.Array:
        return x * jax.nn.sigmoid(affine(p, x))

    def bilinear(p: Any, x: jax.Array) -> jax.Array:
        return affine(p, x) * jnp.tanh(x[:, ::-1])

    layers = {
        "embed": (lambda p, x: jax.nn.gelu(affine(p, x)), matrix(24, 128)),
        "gate": (gate, matrix(128, 128)),
        "pairs": (lambda p, x: affine(p, x).reshape(len(x), -1, 2).max(-1), matrix(128, 160)),
        "norm": (lambda p, x: layer_norm(p, x), vectors(80)),
        "fold": (lambda p, x: x + jnp.square(jax.nn.relu(affine(p, x))), matrix(80, 80)),
        "product": (bilinear, matrix(80, 80)),
        "wave": (lambda p, x: jnp.sin(3.0 * affine(p, x)), matrix(80, 200)),
        "choose": (lambda p, x: jax.nn.softmax(affine(p, x)) * 10.0, matrix(200, 50)),
        "read": (lambda p, x: jnp.arctan(affine(p, x) ** 3), matrix(50, 7)),
    }

    def loss(params: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        for (name, (layer, _)), p in zip(layers.items(), params, strict=True):
            x = run(name, layer, p, x)
        return jnp.mean(jnp.log(jnp.cosh(x - target)))

    params = [weights for _, weights in layers.values()]
    return UnseenStep(jax.value_and_grad(loss), (params, shape(3000, 24), shape(3000, 7)))


def gated_mixer(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains gMLP, in which one half of the channels gates the other, with threefry dropout."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array, key: jax.Array) -> jax.Array:
        u, v = jnp.split(jax.nn.gelu(affine(p["in"], layer_norm(p["n1"], x))), 2, axis=-1)
        v = jnp.einsum("ts,bsc->btc", p["mix"], layer_norm(p["n2"], v)) + 1.0
        y = affine(p["out"], u * v)
        return x + jnp.where(jax.random.uniform(key, y.shape) < 0.9, y, 0.0) / 0.9

    def loss(params: Any, tokens: jax.Array, raw: jax.Array) -> jax.Array:
        key = jax.random.wrap_key_data(raw)
        x = params["embed"][tokens]
        for i, p in enumerate(params["layers"]):
            key, now = jax.random.split(key)
            x = run(f"gmlp/{i}", block, p, x, now)
        return log_loss(affine(params["head"], x), tokens)

    def step(params: Any, velocity: Any, tokens: jax.Array, raw: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, tokens, raw)
        return value, *momentum(params, grads, velocity)

    entry = {"n1": vectors(56), "in": matrix(56, 224), "n2": vectors(112), "mix": shape(90, 90), "out": matrix(112, 56)}
    params = {"embed": shape(140, 56), "layers": [entry] * 5, "head": matrix(56, 140)}
    return UnseenStep(step, (params, params, integers(8, 90), shape(2, dtype=jnp.uint32)), donate=(0, 1))


def modulated_siren(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a sine network of coordinates, whose scales and shifts come from a hypernetwork."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, code: jax.Array, x: jax.Array) -> jax.Array:
        scale, shift = jnp.split(affine(p["hyper_out"], jax.nn.relu(affine(p["hyper_in"], code))), 2, axis=-1)
        return jnp.sin(affine(p["dense"], x) * (1.0 + scale[:, None]) + shift[:, None])

    def loss(params: Any, codes: jax.Array, points: jax.Array, colours: jax.Array) -> jax.Array:
        x = jnp.broadcast_to(points, (codes.shape[0], *points.shape))
        for i, p in enumerate(params["layers"]):
            x = run(f"siren_{i}/film", block, p, codes, x)
        return jnp.mean((affine(params["head"], x) - colours) ** 2) + 1e-3 * jnp.mean(codes**2)

    def layer_weights(inputs: int) -> Any:
        return {"hyper_in": matrix(12, 32), "hyper_out": matrix(32, 96), "dense": matrix(inputs, 48)}

    params = {"layers": [layer_weights(2), *[layer_weights(48)] * 6], "head": matrix(48, 3)}
    grads = jax.value_and_grad(loss, argnums=(0, 1))
    return UnseenStep(grads, (params, shape(6, 12), shape(900, 2), shape(6, 900, 3)))


def trigonometric_rings(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step with a chain of elementwise functions of neighbours in a ring, each with one scalar weight."""
    run = Blocks(checkpoint, scopes)

    def link(a: jax.Array, x: jax.Array) -> jax.Array:
        near = 0.25 * (jnp.roll(x, 1, axis=1) + jnp.roll(x, -1, axis=1)) + 0.5 * x
        y = jnp.exp(-jnp.square(jnp.sin(a * near)))
        return jnp.tanh(jnp.cos(y) * x + jnp.log1p(jnp.abs(y)))

    def loss(scalars: Any, x: jax.Array) -> jax.Array:
        for name, a in zip(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"], scalars, strict=True):
            x = run(f"ring_{name}", link, a, x)
        return jnp.sum(x * jnp.flip(x, axis=1)) / x.size

    return UnseenStep(jax.value_and_grad(loss), ([shape()] * 7, shape(300, 700)))


def loop_one_scope(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains an encoder and a decoder, each a Python loop in one scope, with skips between them."""
    run = Blocks(checkpoint, scopes)

    def layer(p: Any, x: jax.Array) -> jax.Array:
        return jax.nn.silu(affine(p["w"], layer_norm(p["n"], x)))

    def join(p: Any, x: jax.Array, skip: jax.Array) -> jax.Array:
        return skip + layer(p, x)

    def loss(params: Any, x: jax.Array) -> jax.Array:
        skips, y = [], x
        with run.scope("encoder"):
            for p in params["encoder"]:
                skips.append(y)
                y = run.wrap(layer)(p, y)
        with run.scope("decoder"):
            for p in params["decoder"]:
                y = run.wrap(join)(p, y, skips.pop())
        return jnp.mean((y - 2.0 * x) ** 2)

    def step(params: Any, state: Any, x: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x)
        return value, *adam(params, grads, state)

    sizes = [(120, 100), (100, 80), (80, 60), (60, 40)]
    encoder = [{"w": matrix(a, b), "n": vectors(a)} for a, b in sizes]
    decoder = [{"w": matrix(b, a), "n": vectors(b)} for a, b in reversed(sizes)]
    params = {"encoder": encoder, "decoder": decoder}
    return UnseenStep(step, (params, adam_state(params), shape(2500, 120)))


def soft_experts(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a soft mixture of experts: all six experts process every token, and the outputs of the
    two with the highest router scores are summed, weighted by the softmax of these scores."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        y = layer_norm(p["n1"], x)
        x = x + attention(y, y @ p["k"], y @ p["v"], 3)
        y = layer_norm(p["n2"], x)
        best, which = lax.top_k(y @ p["router"], 2)
        weights = jnp.sum(jax.nn.one_hot(which, 6) * jax.nn.softmax(best)[..., None], axis=-2)
        hidden = jax.nn.silu(jnp.einsum("btc,ecf->btef", y, p["up"]))
        return x + jnp.einsum("btef,bte,efc->btc", hidden, weights, p["down"])

    def loss(params: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
        for i, p in enumerate(params["layers"]):
            x = run(f"expert_layer.{i}", block, p, x)
        return log_loss(affine(params["head"], x[:, 0]), labels)

    def step(params: Any, x: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, labels)
        return sgd(params, grads), value

    entry = {"n1": vectors(48), "n2": vectors(48), "k": shape(48, 48), "v": shape(48, 48), "router": shape(48, 6)}
    entry |= {"up": shape(6, 48, 64), "down": shape(6, 64, 48)}
    return UnseenStep(step, ({"layers": [entry] * 4, "head": matrix(48, 32)}, shape(6, 70, 48), integers(6)))


STEPS = {
    "unlike_layers": unlike_layers,
    "gated_mixer": gated_mixer,
    "modulated_siren": modulated_siren,
    "trigonometric_rings": trigonometric_rings,
    "loop_one_scope": loop_one_scope,
    "soft_experts": soft_experts,
}
