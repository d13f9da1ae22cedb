"""Steps on signals: causal convolutions, recurrences, spectra, scans, and linear attention."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from recompute.benchmarks.unseen.held_back.layers import affine, layer_norm, log_loss, matrix, vectors
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, momentum, sgd, shape


def tcn(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a temporal convolutional network, with weight normalization inside the blocks."""
    run = Blocks(checkpoint, scopes)

    def causal(p: Any, x: jax.Array, dilation: int) -> jax.Array:
        w = p["g"][:, None, None] * p["v"] / (jnp.sqrt(jnp.sum(p["v"] ** 2, axis=(1, 2), keepdims=True)) + 1e-6)
        left = [((w.shape[2] - 1) * dilation, 0)]
        return lax.conv_general_dilated(x, w, (1,), left, rhs_dilation=(dilation,)) + p["b"][:, None]

    def block(p: Any, x: jax.Array, *, dilation: int) -> jax.Array:
        y = jax.nn.relu(causal(p["second"], jax.nn.relu(causal(p["first"], x, dilation)), dilation))
        return jax.nn.relu(y + (x if x.shape == y.shape else jnp.einsum("oc,bct->bot", p["match"], x)))

    def loss(params: Any, signal: jax.Array) -> jax.Array:
        x = signal
        for i, p in enumerate(params["levels"]):
            x = run(f"network.{i}", partial(block, dilation=3**i), p, x)
        return jnp.mean((jnp.einsum("oc,bct->bot", params["read"], x)[..., :-1] - signal[..., 1:]) ** 2)

    def weighted(a: int, b: int) -> Any:
        return {"g": shape(b), "v": shape(b, a, 3), "b": shape(b)}

    sizes = [(2, 32), (32, 32), (32, 48), (48, 48), (48, 48)]
    levels = [{"first": weighted(a, b), "second": weighted(b, b), "match": shape(b, a)} for a, b in sizes]
    return UnseenStep(jax.value_and_grad(loss), ({"levels": levels, "read": shape(2, 48)}, shape(6, 2, 1500)))


def lstm_stacked(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains two LSTM layers with peepholes, with three time steps of both layers in each block."""
    run = Blocks(checkpoint, scopes)

    def cell(p: Any, x: jax.Array, h: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
        pre = (affine(p["x"], x) + h @ p["h"]).reshape(x.shape[0], 4, -1)
        i = jax.nn.sigmoid(pre[:, 0] + p["peep"][0] * c)
        f = jax.nn.sigmoid(pre[:, 1] + p["peep"][1] * c + 1.0)
        c = f * c + i * jnp.tanh(pre[:, 2])
        return jax.nn.sigmoid(pre[:, 3] + p["peep"][2] * c) * jnp.tanh(c), c

    def window(p: Any, state: Any, words: jax.Array) -> tuple[Any, jax.Array]:
        (h1, c1), (h2, c2), outputs = *state, []
        for t in range(words.shape[0]):
            h1, c1 = cell(p["lower"], p["embed"][words[t]], h1, c1)
            h2, c2 = cell(p["upper"], h1, h2, c2)
            outputs.append(h2)
        return ((h1, c1), (h2, c2)), jnp.stack(outputs) @ p["embed"].T

    def loss(params: Any, words: jax.Array) -> Any:
        zero = jnp.zeros((words.shape[1], 64))
        state, total = ((zero, zero), (zero, zero)), 0.0
        for i in range(6):
            state, logits = run(f"bptt/window_{i}", window, params, state, words[3 * i : 3 * i + 3])
            total = total + log_loss(logits, words[3 * i + 1 : 3 * i + 4]) / 6
        return total

    def step(params: Any, words: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, words)
        length = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 5.0 / (length + 1e-6)), grads)
        return value, sgd(params, grads, 0.5)

    entry = {"x": matrix(64, 256), "h": shape(64, 256), "peep": shape(3, 64)}
    return UnseenStep(step, ({"embed": shape(96, 64), "lower": entry, "upper": entry}, integers(19, 192)))


def bigru_attentive(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a minimal bidirectional GRU, with a third of the sentence in each block."""
    run = Blocks(checkpoint, scopes)

    def third(p: Any, h: jax.Array, xs: jax.Array) -> tuple[jax.Array, jax.Array]:
        projected, outputs = affine(p["x"], xs), []
        for t in range(xs.shape[1]):
            z_in, n_in = jnp.split(projected[:, t], 2, axis=-1)
            z = jax.nn.sigmoid(z_in + h @ p["z"])
            h = (1 - z) * jnp.tanh(n_in + (z * h) @ p["n"]) + z * h
            outputs.append(h)
        return h, jnp.stack(outputs, axis=1)

    def loss(params: Any, words: jax.Array, labels: jax.Array) -> jax.Array:
        x = params["embed"][words]
        sides = []
        for side, sequence in (("left", x), ("right", x[:, ::-1])):
            h, read = jnp.zeros((x.shape[0], 80)), []
            for i in range(3):
                h, ys = run(f"{side}_{i}", third, params[side], h, sequence[:, 6 * i : 6 * i + 6])
                read.append(ys)
            sides.append(jnp.concatenate(read, axis=1))
        y = jnp.concatenate([sides[0], sides[1][:, ::-1]], axis=-1)
        weights = jax.nn.softmax(jnp.tanh(affine(params["key"], y)) @ params["query"], axis=1)
        return log_loss(affine(params["head"], jnp.einsum("bt,bth->bh", weights, y)), labels)

    def step(params: Any, state: Any, words: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, words, labels)
        return value, *adam(params, grads, state)

    entry = {"x": matrix(40, 160), "z": shape(80, 80), "n": shape(80, 80)}
    params = {"embed": shape(250, 40), "left": entry, "right": entry, "key": matrix(160, 32), "query": shape(32)}
    params |= {"head": matrix(160, 32)}
    return UnseenStep(step, (params, adam_state(params), integers(192, 18), integers(192)), donate=(0, 1))


def fourier_operator(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a Fourier neural operator, which multiplies low frequencies by complex weights."""
    run = Blocks(checkpoint, scopes)
    modes = 8

    def block(p: Any, x: jax.Array) -> jax.Array:
        spectrum = jnp.fft.rfft2(x, axes=(1, 2))
        weights = lax.complex(p["real"], p["imaginary"])
        low = jnp.einsum("bhwi,iohw->bhwo", spectrum[:, :modes, :modes], weights)
        spectrum = jnp.zeros_like(spectrum).at[:, :modes, :modes].set(low)
        return jax.nn.gelu(jnp.fft.irfft2(spectrum, s=x.shape[1:3], axes=(1, 2)) + affine(p["point"], x))

    def loss(params: Any, field: jax.Array, expected: jax.Array) -> jax.Array:
        x = affine(params["lift"], field)
        for i, p in enumerate(params["blocks"]):
            x = run(f"fno/spectral_{i}", block, p, x)
        error = affine(params["drop"], x) - expected
        return jnp.sqrt(jnp.sum(error**2)) / (jnp.sqrt(jnp.sum(expected**2)) + 1e-6)

    half = shape(20, 20, modes, modes)
    params = {"lift": matrix(3, 20), "blocks": [{"real": half, "imaginary": half, "point": matrix(20, 20)}] * 4}
    params |= {"drop": matrix(20, 1)}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(6, 64, 64, 3), shape(6, 64, 64, 1)))


def state_space_scan(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a gated diagonal linear recurrence, computed by `associative_scan`."""
    run = Blocks(checkpoint, scopes)

    def join(a: Any, b: Any) -> Any:
        return a[0] * b[0], b[0] * a[1] + b[1]

    def block(p: Any, x: jax.Array) -> jax.Array:
        y = layer_norm(p["norm"], x)
        drive = affine(p["drive"], y)
        decay = jnp.exp(-jax.nn.softplus(p["rate"]) * jax.nn.sigmoid(affine(p["gate"], y)))
        _, state = lax.associative_scan(join, (decay, jnp.sqrt(1.0 - decay**2 + 1e-6) * drive), axis=1)
        return x + affine(p["read"], state * jax.nn.gelu(affine(p["side"], y)))

    def loss(params: Any, xs: jax.Array, labels: jax.Array) -> jax.Array:
        x = affine(params["lift"], xs)
        for i, p in enumerate(params["blocks"]):
            x = run(f"lru_{i}", block, p, x)
        return log_loss(affine(params["head"], x.mean(axis=1)), labels)

    def step(params: Any, velocity: Any, xs: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, xs, labels)
        return value, momentum(params, grads, velocity)

    entry = {"norm": vectors(40), "drive": matrix(40, 64), "gate": matrix(40, 64), "side": matrix(40, 64)}
    entry |= {"rate": shape(64), "read": matrix(64, 40)}
    params = {"lift": matrix(4, 40), "blocks": [entry] * 4, "head": matrix(40, 32)}
    return UnseenStep(step, (params, params, shape(4, 256, 4), integers(4)))


def linear_attention(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains causal linear attention, computed with cumulative sums of outer products."""
    run = Blocks(checkpoint, scopes)

    def positive(x: jax.Array) -> jax.Array:
        return jax.nn.elu(x) + 1.0

    def block(p: Any, x: jax.Array) -> jax.Array:
        y = layer_norm(p["n1"], x)
        q, k, v = (affine(p[name], y).reshape(*y.shape[:2], 4, -1) for name in ("q", "k", "v"))
        q, k = positive(q), positive(k)
        seen = jnp.cumsum(jnp.einsum("bthd,bthe->bthde", k, v), axis=1)
        mixed = (
            jnp.einsum("bthd,bthde->bthe", q, seen) / jnp.einsum("bthd,bthd->bth", q, jnp.cumsum(k, axis=1))[..., None]
        )
        x = x + affine(p["o"], mixed.reshape(x.shape))
        return x + affine(p["down"], jnp.square(jax.nn.relu(affine(p["up"], layer_norm(p["n2"], x)))))

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        x = params["embed"][tokens[:, :-1]]
        for i, p in enumerate(params["layers"]):
            x = run(f"linear_attention_{i}", block, p, x)
        return log_loss(x @ params["embed"].T, tokens[:, 1:])

    entry = {name: matrix(48, 48) for name in ("q", "k", "v", "o")} | {"n1": vectors(48), "n2": vectors(48)}
    entry |= {"up": matrix(48, 144), "down": matrix(144, 48)}
    return UnseenStep(jax.value_and_grad(loss), ({"embed": shape(128, 48), "layers": [entry] * 4}, integers(4, 129)))


STEPS = {
    "tcn": tcn,
    "lstm_stacked": lstm_stacked,
    "bigru_attentive": bigru_attentive,
    "fourier_operator": fourier_operator,
    "state_space_scan": state_space_scan,
    "linear_attention": linear_attention,
}
