"""A step written with Flax Linen, which names scopes by itself, and an optax optimizer."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from recompute.benchmarks.unseen.step_parts import UnseenStep, shape


class Stage(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for _ in range(2):
            x = nn.swish(nn.GroupNorm(num_groups=4)(nn.Conv(self.features, (3, 3))(x)))
        return x


class UNet(nn.Module):
    remat: bool

    def setup(self) -> None:
        stage = nn.remat(Stage) if self.remat else Stage
        self.contracting = [stage(c) for c in (12, 24, 32)]
        self.bottom = stage(48)
        self.widening = [nn.ConvTranspose(c, (2, 2), strides=(2, 2)) for c in (32, 24, 12)]
        self.expanding = [stage(c) for c in (32, 24, 12)]
        self.head = nn.Conv(3, (1, 1))

    def __call__(self, x: jax.Array) -> jax.Array:
        skips = []
        for stage in self.contracting:
            x = stage(x)
            skips.append(x)
            x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        x = self.bottom(x)
        for widen, stage in zip(self.widening, self.expanding, strict=True):
            x = stage(jnp.concatenate([widen(x), skips.pop()], axis=-1))
        return self.head(x)


def linen_denoiser(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a denoising U-Net, whose submodules are created in `setup`."""
    model, image = UNet(checkpoint), shape(4, 64, 64, 3)
    optimizer = optax.adamw(1e-3)
    params = jax.eval_shape(model.init, jax.random.key(0), image)

    def loss(params: Any, image: jax.Array, raw: jax.Array) -> jax.Array:
        first, second = jax.random.split(jax.random.wrap_key_data(raw))
        noise = jax.random.normal(first, image.shape)
        strength = jax.random.uniform(second, (image.shape[0], 1, 1, 1))
        mixed = jnp.cos(1.57 * strength) * image + jnp.sin(1.57 * strength) * noise
        predicted: Any = model.apply(params, mixed)
        return jnp.mean((predicted - noise) ** 2)

    def step(params: Any, state: Any, image: jax.Array, raw: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, raw)
        updates, state = optimizer.update(grads, state, params)
        return value, optax.apply_updates(params, updates), state

    arguments = (params, jax.eval_shape(optimizer.init, params), image, shape(2, dtype=jnp.uint32))
    return UnseenStep(step, arguments, (0, 1))


STEPS = {"linen_denoiser": linen_denoiser}
