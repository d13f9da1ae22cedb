"""A Flax Linen module in a `shard_map`, with batch normalization across devices, and dropout."""

# pyright: basic

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import device_mesh, gradient_builder, normal

mesh = device_mesh((8,), ("d",))
LAYERS, WIDTH, BATCH = 4, 64, 512


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.BatchNorm(use_running_average=False, axis_name="d" if not self.is_initializing() else None)(x)
        h = nn.gelu(nn.Dense(4 * WIDTH)(h))
        h = nn.Dropout(0.1, deterministic=False)(h)
        return x + nn.Dense(WIDTH)(h)


class Net(nn.Module):
    remat: bool = False

    @nn.compact
    def __call__(self, x):
        block_class = nn.remat(Block) if self.remat else Block
        for i in range(LAYERS):
            x = block_class(name=f"block{i}")(x)
        return x


x = normal(99, BATCH, WIDTH, scale=1.0)
variables = Net().init(dict(params=jax.random.key(0), dropout=jax.random.key(1)), x[:4])


def loss(parameters, batch_stats, key, x, remat):
    def net(parameters, batch_stats, key, x):
        device_key = jax.random.fold_in(key, lax.axis_index("d"))
        y, updated = Net(remat).apply(
            dict(params=parameters, batch_stats=batch_stats), x, rngs=dict(dropout=device_key), mutable=["batch_stats"]
        )
        return lax.pmean(jnp.mean(y**2), "d"), jax.tree.map(
            lambda statistic: lax.pmean(statistic, "d"), updated["batch_stats"]
        )

    return jax.shard_map(net, mesh=mesh, in_specs=(P(), P(), P(), P("d")), out_specs=(P(), P()), check_vma=False)(
        parameters, batch_stats, key, x
    )


ARGUMENTS = (variables["params"], variables["batch_stats"], jax.random.key(7), x)
build_step = gradient_builder(loss, has_aux=True)
