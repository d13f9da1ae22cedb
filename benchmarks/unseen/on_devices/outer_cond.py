"""A conditional around a `shard_map` with complex FFTs, differentiated by `jax.vjp` with a cotangent argument."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, normal

mesh = device_mesh((8,), ("s",))
LAYERS, BATCH, LENGTH, CHANNELS = 4, 4, 128, 32
parameters = [
    dict(weights=normal(i, CHANNELS, CHANNELS, scale=0.3), filter=normal(50 + i, LENGTH, CHANNELS))
    for i in range(LAYERS)
]
x = normal(99, BATCH, LENGTH, CHANNELS, scale=1.0)


def mix(x, weights, phases):
    z = lax.all_to_all(x, "s", 2, 1, tiled=True)  # (BATCH, LENGTH, CHANNELS / 8)
    z = jnp.fft.ifft(jnp.fft.fft(z.astype(jnp.complex64), axis=1) * jnp.exp(1j * phases)[None], axis=1).real
    z = lax.all_to_all(z, "s", 1, 2, tiled=True)
    return jnp.tanh(z @ weights)


mix_on_devices = jax.shard_map(mix, mesh=mesh, in_specs=(P(None, "s"), P(), P(None, "s")), out_specs=P(None, "s"))


def block(x, layer, is_kept):
    return lax.cond(is_kept, lambda x: x + mix_on_devices(x, layer["weights"], layer["filter"]), lambda x: x * 0.5, x)


def build_step(remat):
    run_block = checkpoint_if(remat)(block)

    def net(parameters, x, is_kept):
        for i, layer in enumerate(parameters):
            with jax.named_scope(f"block{i}"):
                x = run_block(x, layer, is_kept[i])
        return x

    def step(parameters, x, is_kept, cotangent):
        y, vjp = jax.vjp(lambda parameters, x: net(parameters, x, is_kept), parameters, x)
        return y, vjp(cotangent)

    return step


ARGUMENTS = (parameters, x, jnp.array([1, 0, 1, 1], bool), normal(97, BATCH, LENGTH, CHANNELS))
