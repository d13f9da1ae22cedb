"""Steps with chains of blocks that have no scope names, so that the passes find blocks by their structure alone."""

# pyright: basic
# ruff: noqa: E731

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from recompute.benchmarks.families.parts import (
    descend,
    draw,
    layer_of,
    layers,
    loss_of,
    mean_square,
    mlp,
    normal,
    step,
    unrolled,
)


def _integers(bound, *shape):
    return jnp.asarray(draw.integers(0, bound, shape))


@step
def mlp_blocks(wrap):
    """Build a step whose model is a chain of unrolled residual MLP blocks."""
    return jax.value_and_grad(loss_of(unrolled, wrap)), (layers(8), normal(256, 32))


def _attention(x, p):
    batch, length, width = x.shape
    norm = lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    heads = lambda x: x.reshape(batch, length, 4, width // 4).transpose(0, 2, 1, 3)
    query, key, value = map(heads, jnp.split(norm(x) @ p["qkv"], 3, -1))
    mixed = jax.nn.softmax(query @ key.swapaxes(-1, -2) / 4) @ value
    x = x + mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ p["out"]
    return x + jax.nn.gelu(norm(x) @ p["up"]) @ p["down"]


def _attention_layers(count, width=32):
    return layers(count) | {"qkv": normal(count, width, 3 * width), "out": normal(count, width, width)}


def _cross_entropy(x, embedding, tokens):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x @ embedding.T), tokens[..., None], -1))


@step
def transformer(wrap):
    """Build a step whose model is an unrolled Transformer with a cross-entropy loss."""

    def loss(p, embedding, tokens):
        return _cross_entropy(unrolled(wrap, p, embedding[tokens], _attention), embedding, tokens)

    return jax.value_and_grad(loss), (_attention_layers(6), normal(64, 32), _integers(64, 8, 32))


@step
def chunked_cross_entropy(wrap):
    """Build a step that computes its cross-entropy loss in a scan over chunks of the tokens."""

    def loss(p, embedding, tokens):
        x = unrolled(wrap, p, embedding[tokens], _attention)
        chunk = wrap(lambda total, part: (total + _cross_entropy(part[0], embedding, part[1]), None))
        return lax.scan(chunk, 0.0, (x, tokens))[0]

    return jax.value_and_grad(loss), (_attention_layers(4), normal(512, 32), _integers(512, 8, 32))


@step
def mixture_of_experts(wrap):
    """Build a step whose blocks mix the outputs of several experts with the weights of a router."""

    def block(x, p):
        shares = jax.nn.softmax(x @ p["gate"])
        hidden = jnp.tanh(jnp.einsum("td,edh->teh", x, p["up"]))
        return x + jnp.einsum("teh,ehd,te->td", hidden, p["down"], shares)

    loss = lambda p, x: mean_square(unrolled(wrap, p, x, block))
    p = {"gate": normal(5, 32, 4), "up": normal(5, 4, 32, 64), "down": normal(5, 4, 64, 32)}
    return jax.value_and_grad(loss), (p, normal(128, 32))


@step
def unet(wrap):
    """Build a step whose model is a convolutional U-Net with skip connections."""

    def convolution(x, w):
        dimensions = ("NHWC", "HWIO", "NHWC")
        return jax.nn.silu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dimensions))

    block = lambda x, w: convolution(convolution(x, w[0]), w[1])

    def loss(p, x):
        skipped = []
        for w in p["down"]:
            x = wrap(block)(x, w)
            skipped.append(x)
            x = x[:, ::2, ::2]
        for w in p["up"]:
            x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
            x = wrap(block)(x + skipped.pop(), w)
        return mean_square(x)

    p = {"down": normal(3, 2, 3, 3, 8, 8), "up": normal(3, 2, 3, 3, 8, 8)}
    return jax.value_and_grad(loss), (p, normal(2, 32, 32, 8))


@step
def fake_quantization(wrap):
    """Build a step that rounds weights and activations, and passes gradients straight through the rounding."""

    def quantized(w):
        scale = jnp.max(jnp.abs(w)) / 127
        return w + lax.stop_gradient(jnp.round(w / scale) * scale - w)

    def block(x, p):
        return x + jnp.tanh(jnp.sin(quantized(x) @ quantized(p["up"])) @ quantized(p["down"]))

    loss = lambda p, x: mean_square(unrolled(wrap, p, x, block))
    return jax.value_and_grad(loss), (layers(6), normal(128, 32))


@step
def loss_scaling(wrap):
    """Build a bf16 step that scales its loss, and skips the update if a gradient is not finite."""

    def update(p, x, scale):
        def loss(p):
            half = lambda tree: jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), tree)
            y = half(x)
            for index in range(6):
                y = wrap(mlp)(y, half(layer_of(p, index)))
            return mean_square(y.astype(jnp.float32)) * scale

        value, gradient = jax.value_and_grad(loss)(p)
        gradient = jax.tree.map(lambda g: g / scale, gradient)
        is_finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(gradient)]))
        new = jax.tree.map(lambda old, new: jnp.where(is_finite, new, old), p, descend(p, gradient))
        return value, new, jnp.where(is_finite, scale * 2, scale / 2)

    return update, (layers(6), normal(256, 32), jnp.float32(8.0))


def _dropped(x, key):
    return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0.0)


@step
def dropout_scanned(wrap):
    """Build a step that applies dropout in layers inside a scan."""

    def loss(p, x, key):
        body = lambda x, layer: (_dropped(mlp(x, layer[0]), layer[1]), None)
        return mean_square(lax.scan(wrap(body), x, (p, jax.random.split(key, 8)))[0])

    return jax.value_and_grad(loss), (layers(8), normal(64, 32), jax.random.key(0))


@step
def dropout_unrolled(wrap):
    """Build a step that applies dropout in unrolled layers."""

    def loss(p, x, key):
        block = wrap(lambda x, q, key: _dropped(mlp(x, q), key))
        for index in range(6):
            x = block(x, layer_of(p, index), jax.random.fold_in(key, index))
        return mean_square(x)

    return jax.value_and_grad(loss), (layers(6), normal(128, 32), jax.random.key(0))


@step
def batch_norm(wrap):
    """Build a step whose blocks normalize over the batch and return updated running statistics."""

    def block(x, q, running):
        statistics = x.mean(0), x.var(0)
        y = jnp.tanh(((x - statistics[0]) * lax.rsqrt(statistics[1] + 1e-5)) @ q["up"]) @ q["down"]
        return x + y, [0.9 * old + 0.1 * new for old, new in zip(running, statistics, strict=True)]

    def loss(p, running, x):
        new = []
        for index in range(6):
            x, statistics = wrap(block)(x, layer_of(p, index), running[index])
            new.append(statistics)
        return mean_square(x), new

    running = [[normal(32), normal(32)] for _ in range(6)]
    return jax.value_and_grad(loss, has_aux=True), (layers(6), running, normal(128, 32))


@step
def graph_network(wrap):
    """Build a step whose blocks pass messages between the nodes of a graph."""

    def loss(p, nodes, senders, receivers):
        def block(x, q):
            return x + jax.ops.segment_sum(jnp.tanh(x[senders] @ q["up"]), receivers, 64) @ q["down"]

        return mean_square(unrolled(wrap, p, nodes, block))

    return jax.value_and_grad(loss), (layers(5, 32, 32), normal(64, 32), _integers(64, 256), _integers(64, 256))


@step
def coupling_flow(wrap):
    """Build a step that trains a normalizing flow of affine coupling layers."""

    def block(x, q):
        fixed_half, scaled_half = jnp.split(x, 2, -1)
        scale, shift = jnp.split(jnp.tanh(fixed_half @ q["up"]) @ q["down"], 2, -1)
        scale = jnp.tanh(scale)
        return jnp.concatenate([scaled_half * jnp.exp(scale) + shift, fixed_half], -1), scale.sum(-1)

    def loss(p, x):
        determinant = 0.0
        for index in range(6):
            x, part = wrap(block)(x, layer_of(p, index))
            determinant = determinant + part
        return mean_square(x) - jnp.mean(determinant)

    return jax.value_and_grad(loss), ({"up": normal(6, 16, 128), "down": normal(6, 128, 32)}, normal(128, 32))


@step
def low_rank_adaptation(wrap):
    """Build a step that trains low-rank adapters (LoRA) of frozen weights."""

    def loss(adapters, p, x):
        def block(x, q):
            own, adapter = q
            return x + jnp.tanh(x @ own["up"] + x @ adapter["a"] @ adapter["b"]) @ own["down"]

        return mean_square(unrolled(wrap, (p, adapters), x, block))

    return jax.value_and_grad(loss), ({"a": normal(6, 32, 4), "b": normal(6, 4, 128)}, layers(6), normal(128, 32))


@step
def variational_autoencoder(wrap):
    """Build a step that trains a variational autoencoder, with the noise as an argument."""

    def loss(p, x, noise):
        code = unrolled(wrap, p["encoder"], x)
        decoded = unrolled(wrap, p["decoder"], code + jnp.exp(0.1 * code) * noise)
        return mean_square(decoded - x) + 0.1 * mean_square(code)

    p = {"encoder": layers(3), "decoder": layers(3)}
    return jax.value_and_grad(loss), (p, normal(256, 32), normal(256, 32))
