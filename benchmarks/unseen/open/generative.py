"""Steps that train autoencoders, adversarial networks and flows."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.open.open_layers import batch_norm, conv, dense, group_norm, linear, normed, upconv
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, key_data, momentum, sgd, shape


def conv_autoencoder(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains an autoencoder of strided and transposed convolutions."""
    run = Blocks(checkpoint, scopes)
    widths = [3, 16, 32, 64]

    def shrink(p: Any, x: jax.Array) -> jax.Array:
        x = jax.nn.leaky_relu(group_norm(conv(x, p["same"]), **p["norm"], groups=4))
        return jax.nn.leaky_relu(conv(x, p["half"], 2))

    def grow(p: Any, x: jax.Array) -> jax.Array:
        x = jax.nn.leaky_relu(upconv(x, p["double"]))
        return conv(jax.nn.leaky_relu(group_norm(x, **p["norm"], groups=4)), p["same"])

    def loss(params: Any, image: jax.Array) -> jax.Array:
        x = image
        for i, p in enumerate(params["encoder"]):
            x = run(f"encoder/stage{i}", shrink, p, x)
        for i, p in enumerate(params["decoder"]):
            x = run(f"decoder/stage{i}", grow, p, x)
        return jnp.mean((jax.nn.sigmoid(x) - image) ** 2)

    def step(params: Any, velocity: Any, image: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image)
        return value, *momentum(params, grads, velocity)

    pairs = list(pairwise(widths))
    encoder = [{"same": shape(3, 3, a, b), "half": shape(3, 3, b, b), "norm": normed(b)} for a, b in pairs]
    decoder = [{"double": shape(4, 4, b, b), "same": shape(3, 3, b, a), "norm": normed(b)} for a, b in reversed(pairs)]
    params = {"encoder": encoder, "decoder": decoder}
    return UnseenStep(step, (params, params, shape(8, 64, 64, 3)), donate=(0, 1))


def vae_ladder(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a variational autoencoder with latent variables at three depths."""
    run = Blocks(checkpoint, scopes)

    def up(p: Any, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        x = jax.nn.elu(batch_norm(dense(p["deep"], jax.nn.elu(dense(p["wide"], x))), **p["norm"]))
        mean, raw = jnp.split(dense(p["latent"], x), 2, axis=-1)
        return x, mean, jnp.clip(raw, -5.0, 5.0)

    def down(p: Any, x: jax.Array, z: jax.Array) -> jax.Array:
        x = jnp.concatenate([x, z], axis=-1)
        return jax.nn.elu(batch_norm(dense(p["deep"], jax.nn.elu(dense(p["wide"], x))), **p["norm"]))

    def loss(params: Any, image: jax.Array, raw: jax.Array) -> jax.Array:
        keys = jax.random.split(jax.random.wrap_key_data(raw), 3)
        x, latents, penalty = image, [], 0.0
        for i, p in enumerate(params["up"]):
            x, mean, log_variance = run(f"ladder/up_{i}", up, p, x)
            noise = jax.random.normal(keys[i], mean.shape)
            latents.append(mean + jnp.exp(0.5 * log_variance) * noise)
            penalty += 0.5 * jnp.mean(mean**2 + jnp.exp(log_variance) - log_variance - 1.0)
        for i, p in enumerate(params["down"]):
            x = run(f"ladder/down_{i}", down, p, x, latents.pop())
        logits = dense(params["head"], x)
        return jnp.mean(jax.nn.softplus(logits) - image * logits) + penalty

    def step(params: Any, state: Any, image: jax.Array, raw: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, raw)
        return value, *adam(params, grads, state)

    sizes = [(196, 160, 32), (160, 96, 16), (96, 64, 8)]
    ups = [
        {"wide": linear(a, 256), "deep": linear(256, b), "norm": normed(b), "latent": linear(b, 2 * z)}
        for a, b, z in sizes
    ]
    downs = [
        {"wide": linear(a + z, 256), "deep": linear(256, b), "norm": normed(b)}
        for a, z, b in [(64, 8, 96), (96, 16, 160), (160, 32, 196)]
    ]
    params = {"up": ups, "down": downs, "head": linear(196, 196)}
    return UnseenStep(step, (params, adam_state(params), shape(1024, 196), key_data()))


def gan_hinge(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that computes the gradients of a generator and a discriminator, with a hinge loss."""
    run = Blocks(checkpoint, scopes)

    def generate(p: Any, x: jax.Array) -> jax.Array:
        return jax.nn.relu(batch_norm(upconv(x, p["w"]), **p["norm"]))

    def judge(p: Any, x: jax.Array) -> jax.Array:
        return jax.nn.leaky_relu(conv(conv(x, p["w"]), p["half"], 2), 0.2)

    def generator(params: Any, z: jax.Array) -> jax.Array:
        x = dense(params["stem"], z).reshape(-1, 4, 4, 64)
        for i, p in enumerate(params["layers"]):
            x = run(f"G/up{i}", generate, p, x)
        return jnp.tanh(conv(x, params["head"]))

    def discriminator(params: Any, x: jax.Array) -> jax.Array:
        for i, p in enumerate(params["layers"]):
            x = run(f"D/down{i}", judge, p, x)
        return dense(params["head"], x.reshape(x.shape[0], -1))

    def loss_g(g: Any, d: Any, z: jax.Array) -> tuple[jax.Array, jax.Array]:
        fake = generator(g, z)
        return -discriminator(d, fake).mean(), fake

    def loss_d(d: Any, real: jax.Array, fake: jax.Array) -> jax.Array:
        return jax.nn.relu(1 - discriminator(d, real)).mean() + jax.nn.relu(1 + discriminator(d, fake)).mean()

    def step(g: Any, d: Any, z: jax.Array, real: jax.Array) -> Any:
        (value_g, fake), grads_g = jax.value_and_grad(loss_g, has_aux=True)(g, d, z)
        value_d, grads_d = jax.value_and_grad(loss_d)(d, real, jax.lax.stop_gradient(fake))
        return (value_g, value_d), sgd(g, grads_g), sgd(d, grads_d)

    ups = [{"w": shape(4, 4, a, b), "norm": normed(b)} for a, b in [(64, 48), (48, 32), (32, 24), (24, 16)]]
    downs = [{"w": shape(3, 3, a, b), "half": shape(3, 3, b, b)} for a, b in [(3, 16), (16, 24), (24, 32), (32, 48)]]
    g = {"stem": linear(32, 1024), "layers": ups, "head": shape(3, 3, 16, 3)}
    d = {"layers": downs, "head": linear(768, 1)}
    return UnseenStep(step, (g, d, shape(8, 32), shape(8, 64, 64, 3)), donate=(0, 1))


def realnvp(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains RealNVP, a flow of eight affine coupling layers, by its likelihood."""
    run = Blocks(checkpoint, scopes)

    def couple(p: Any, x: jax.Array, *, flip: bool) -> tuple[jax.Array, jax.Array]:
        a, b = jnp.split(x, 2, axis=-1)
        a, b = (b, a) if flip else (a, b)
        hidden = jax.nn.relu(dense(p["second"], jax.nn.relu(dense(p["first"], a))))
        scale, move = jnp.split(dense(p["third"], hidden), 2, axis=-1)
        scale = jnp.tanh(scale)
        b = b * jnp.exp(scale) + move
        return jnp.concatenate([b, a] if flip else [a, b], axis=-1), scale.sum(-1)

    def loss(params: Any, x: jax.Array) -> jax.Array:
        volume = jnp.zeros(x.shape[0])
        for i, p in enumerate(params):
            x, change = run(f"coupling_{i}", partial(couple, flip=bool(i % 2)), p, x)
            volume = volume + change
        return jnp.mean(0.5 * jnp.sum(x * x, axis=-1) - volume)

    params = [{"first": linear(16, 128), "second": linear(128, 128), "third": linear(128, 32)}] * 8
    return UnseenStep(jax.value_and_grad(loss), (params, shape(2048, 32)))


STEPS = {
    "conv_autoencoder": conv_autoencoder,
    "vae_ladder": vae_ladder,
    "gan_hinge": gan_hinge,
    "realnvp": realnvp,
}
