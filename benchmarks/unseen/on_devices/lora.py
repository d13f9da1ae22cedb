"""LoRA with frozen weights in a `shard_map`, with an all_gather and a psum_scatter in each block."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import (
    checkpoint_if,
    device_mesh,
    gradient_builder,
    mlp_parameters,
    normal,
)

mesh = device_mesh((2, 2, 2), ("a", "b", "c"))
LAYERS, WIDTH, BATCH, LENGTH = 4, 64, 8, 32
base = mlp_parameters(LAYERS, WIDTH)
base_specs = [dict(expand=P(None, "c"), project=P("c", None))] * LAYERS
adapters = [dict(down=normal(70 + 2 * i, WIDTH, 4), up=normal(71 + 2 * i, 4, 4 * WIDTH)) for i in range(LAYERS)]
adapter_specs = [dict(down=P(), up=P(None, "c"))] * LAYERS
x = normal(99, BATCH, LENGTH, WIDTH, scale=1.0)


def block(x, weights, adapter, key):
    h = lax.all_gather(x, "c", axis=1, tiled=True)
    h = h @ weights["expand"] + (h @ adapter["down"]) @ adapter["up"]
    key = jax.random.fold_in(jax.random.fold_in(key, lax.axis_index(("a", "b"))), lax.axis_index("c"))
    h = jnp.where(jax.random.bernoulli(key, 0.8, h.shape), jax.nn.silu(h) / 0.8, 0)
    return x + lax.psum_scatter(h @ weights["project"], "c", scatter_dimension=1, tiled=True)


def loss(adapters, base, key, x, remat):
    run_block = checkpoint_if(remat)(block)

    def net(adapters, base, key, x):
        keys = jax.random.split(key, LAYERS)
        for i in range(LAYERS):
            x = run_block(x, base[i], adapters[i], keys[i])
        return x

    y = jax.shard_map(
        net, mesh=mesh, in_specs=(adapter_specs, base_specs, P(), P(("a", "b"), "c")), out_specs=P(("a", "b"), "c")
    )(adapters, base, key, x)
    return jnp.mean(y**2)


ARGUMENTS = (adapters, base, jax.random.key(1), x)
build_step = gradient_builder(loss)
