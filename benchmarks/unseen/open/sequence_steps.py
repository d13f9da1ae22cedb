"""Steps on sequences: dilated convolutions, unrolled recurrences, Fourier mixing, a state-space model."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from recompute.benchmarks.unseen.open.open_layers import cross_entropy, dense, layer_norm, linear, normed, rms_norm
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, sgd, shape


def wavenet(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains WaveNet, with ten gated dilated convolutions and summed skip connections."""
    run = Blocks(checkpoint, scopes)

    def dilated(x: jax.Array, w: jax.Array, dilation: int) -> jax.Array:
        numbers = ("NWC", "WIO", "NWC")
        return lax.conv_general_dilated(
            x, w, (1,), [(dilation, 0)], rhs_dilation=(dilation,), dimension_numbers=numbers
        )

    def layer(p: Any, x: jax.Array, *, dilation: int) -> tuple[jax.Array, jax.Array]:
        both = dilated(x, p["filter_gate"], dilation)
        signal, gate = jnp.split(both, 2, axis=-1)
        y = jnp.tanh(signal) * jax.nn.sigmoid(gate)
        return x + dense(p["residual"], y), dense(p["skip"], y)

    def loss(params: Any, samples: jax.Array) -> jax.Array:
        x, total = params["embed"][samples], 0.0
        for i, p in enumerate(params["layers"]):
            x, skip = run(f"dilated_{2 ** (i % 5)}_{i // 5}", partial(layer, dilation=2 ** (i % 5)), p, x)
            total = total + skip
        logits = dense(params["head"], jax.nn.relu(total))
        return cross_entropy(logits[:, :-1], samples[:, 1:])

    entry = {"filter_gate": shape(2, 32, 64), "residual": linear(32, 32), "skip": linear(32, 32)}
    params = {"embed": shape(64, 32), "layers": [entry] * 10, "head": linear(32, 64)}
    return UnseenStep(jax.value_and_grad(loss), (params, integers(4, 2048)))


def gru_unrolled(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a GRU over 64 unrolled time steps, with eight of them in each block."""
    run = Blocks(checkpoint, scopes)

    def cell(p: Any, h: jax.Array, x: jax.Array) -> jax.Array:
        gates = jax.nn.sigmoid(x @ p["wx"] + h @ p["wh"] + p["b"])
        update, reset = jnp.split(gates, 2, axis=-1)
        new = jnp.tanh(x @ p["nx"] + reset * (h @ p["nh"]))
        return (1 - update) * new + update * h

    def chunk(p: Any, h: jax.Array, xs: jax.Array) -> tuple[jax.Array, jax.Array]:
        outputs = []
        for t in range(xs.shape[1]):
            h = cell(p, h, xs[:, t])
            outputs.append(h)
        return h, jnp.stack(outputs, axis=1)

    def loss(params: Any, xs: jax.Array, target: jax.Array) -> jax.Array:
        h, outputs = jnp.zeros((xs.shape[0], 96)), []
        for i in range(8):
            h, ys = run(f"time{8 * i}-{8 * i + 7}", chunk, params["cell"], h, xs[:, 8 * i : 8 * i + 8])
            outputs.append(ys)
        return jnp.mean((dense(params["head"], jnp.concatenate(outputs, axis=1)) - target) ** 2)

    def step(params: Any, state: Any, xs: jax.Array, target: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, xs, target)
        return value, *adam(params, grads, state)

    cell_weights = {"wx": shape(24, 192), "wh": shape(96, 192), "b": shape(192), "nx": shape(24, 96)}
    params = {"cell": cell_weights | {"nh": shape(96, 96)}, "head": linear(96, 24)}
    return UnseenStep(step, (params, adam_state(params), shape(64, 64, 24), shape(64, 64, 24)))


def bilstm_tagger(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains two bidirectional LSTM layers, with each direction of a layer as a block."""
    run = Blocks(checkpoint, scopes)

    def direction(p: Any, xs: jax.Array, *, backward: bool) -> jax.Array:
        h = c = jnp.zeros((xs.shape[0], 64))
        outputs: list[Any] = [None] * xs.shape[1]
        for t in reversed(range(xs.shape[1])) if backward else range(xs.shape[1]):
            i, f, g, o = jnp.split(jnp.concatenate([xs[:, t], h], axis=-1) @ p["w"] + p["b"], 4, axis=-1)
            c = jax.nn.sigmoid(f + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            outputs[t] = h
        return jnp.stack(outputs, axis=1)

    def loss(params: Any, words: jax.Array, tags: jax.Array) -> jax.Array:
        x = params["embed"][words]
        for i, p in enumerate(params["layers"]):
            forward = run(f"lstm{i}/forward", partial(direction, backward=False), p["forward"], x)
            backward = run(f"lstm{i}/backward", partial(direction, backward=True), p["backward"], x)
            x = jnp.concatenate([forward, backward], axis=-1)
        return cross_entropy(dense(params["head"], x), tags)

    def step(params: Any, words: jax.Array, tags: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, words, tags)
        return value, sgd(params, grads, 0.1)

    layers = [{name: linear(n + 64, 256) for name in ("forward", "backward")} for n in (48, 128)]
    params = {"embed": shape(500, 48), "layers": layers, "head": linear(128, 40)}
    return UnseenStep(step, (params, integers(128, 14), integers(128, 14)))


def mamba_cumsum(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a selective state-space model, with its recurrence as a cumulative sum."""
    run = Blocks(checkpoint, scopes)
    width, states = 48, 8

    def block(p: Any, x: jax.Array) -> jax.Array:
        u, gate = jnp.split(rms_norm(x, p["norm"]) @ p["inputs"], 2, axis=-1)
        padded = jnp.pad(u, ((0, 0), (3, 0), (0, 0)))
        u = jax.nn.silu(sum(padded[:, i : i + u.shape[1]] * p["taps"][i] for i in range(4)))
        delta = 0.02 * jax.nn.softplus(u @ p["delta"])
        b, c = u @ p["b"], u @ p["c"]
        decay = jnp.cumsum(delta[..., None] * -jnp.exp(p["a"]), axis=1)
        state = jnp.exp(decay) * jnp.cumsum(jnp.exp(-decay) * (delta * u)[..., None] * b[:, :, None, :], axis=1)
        y = jnp.einsum("btds,bts->btd", state, c) + p["d"] * u
        return x + (y * jax.nn.silu(gate)) @ p["outputs"]

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        x = params["embed"][tokens]
        for i, p in enumerate(params["layers"]):
            x = run(f"backbone/layers.{i}/mixer", block, p, x)
        return cross_entropy((x @ params["embed"].T)[:, :-1], tokens[:, 1:])

    entry = {
        "norm": shape(width),
        "inputs": shape(width, 2 * width),
        "taps": shape(4, width),
        "delta": shape(width, width),
        "b": shape(width, states),
        "c": shape(width, states),
        "a": shape(width, states),
        "d": shape(width),
        "outputs": shape(width, width),
    }
    return UnseenStep(jax.value_and_grad(loss), ({"embed": shape(256, width), "layers": [entry] * 5}, integers(4, 256)))


def fnet(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains FNet, whose encoder layers mix tokens with a two-dimensional Fourier transform."""
    run = Blocks(checkpoint, scopes)

    def layer(p: Any, x: jax.Array) -> jax.Array:
        mixed = jnp.fft.fft(jnp.fft.fft(x, axis=-1), axis=-2).real
        x = layer_norm(x + mixed / x.shape[1], **p["n1"])
        return layer_norm(x + dense(p["out"], jax.nn.gelu(dense(p["in"], x))), **p["n2"])

    def loss(params: Any, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        x = params["embed"][tokens] + params["positions"]
        for i, p in enumerate(params["layers"]):
            x = run(f"encoder/layer_{i}", layer, p, x)
        return cross_entropy(dense(params["head"], x), labels)

    def step(params: Any, state: Any, tokens: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, tokens, labels)
        return value, *adam(params, grads, state, decay=0.01)

    entry = {"in": linear(64, 256), "out": linear(256, 64), "n1": normed(64), "n2": normed(64)}
    params = {"embed": shape(300, 64), "positions": shape(128, 64), "layers": [entry] * 6, "head": linear(64, 300)}
    return UnseenStep(step, (params, adam_state(params), integers(8, 128), integers(8, 128)), donate=(0, 1))


STEPS = {
    "wavenet": wavenet,
    "gru_unrolled": gru_unrolled,
    "bilstm_tagger": bilstm_tagger,
    "mamba_cumsum": mamba_cumsum,
    "fnet": fnet,
}
