"""An ensemble of U-Nets under a vmap, in a `shard_map` whose convolutions exchange borders with ppermute."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, gradient_builder, normal

mesh = device_mesh((8,), ("s",))
LAYERS, CHANNELS, BATCH, LENGTH = 4, 16, 8, 256
parameters = [
    dict(weights=normal(i, 3, CHANNELS, CHANNELS, scale=0.3), merge=normal(50 + i, 2 * CHANNELS, CHANNELS, scale=0.3))
    for i in range(LAYERS)
]
x = normal(99, 2, BATCH, LENGTH, CHANNELS, scale=1.0)


def conv(x, weights):
    left = lax.ppermute(x[:, -1:], "s", [(i, (i + 1) % 8) for i in range(8)])
    right = lax.ppermute(x[:, :1], "s", [(i, (i - 1) % 8) for i in range(8)])
    return lax.conv_general_dilated(
        jnp.concatenate([left, x, right], 1), weights, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
    )


def down(x, weights):
    return jax.nn.elu(conv(x, weights))


def up(x, skip, merge):
    return jnp.sort(jnp.concatenate([x, skip], -1), axis=-1) @ merge + skip


def loss(parameters, x, remat):
    run_down = checkpoint_if(remat)(down)
    run_up = checkpoint_if(remat)(up)

    def net(parameters, x):
        skips = []
        for i, layer in enumerate(parameters):
            with jax.named_scope(f"down{i}"):
                skips.append(x)
                x = run_down(x, layer["weights"])
        for i, (layer, skip) in enumerate(zip(parameters[::-1], skips[::-1], strict=True)):
            with jax.named_scope(f"up{i}"):
                x = run_up(x, skip, layer["merge"])
        return x

    net_on_devices = jax.shard_map(net, mesh=mesh, in_specs=(P(), P(None, "s")), out_specs=P(None, "s"))
    return jnp.mean(jax.vmap(net_on_devices, (None, 0))(parameters, x) ** 2)


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss)
