"""FSDP: each block gathers its sharded parameters, so that the gradients need a reduce-scatter."""

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
    normal,
    run_blocks,
)

mesh = device_mesh((8,), ("d",))
LAYERS, WIDTH, BATCH = 5, 64, 512
parameters = [
    dict(
        expand=normal(3 * i, WIDTH, 4 * WIDTH),
        project=normal(3 * i + 1, 4 * WIDTH, WIDTH),
        scale=normal(3 * i + 2, WIDTH) + 1,
    )
    for i in range(LAYERS)
]
x = normal(99, BATCH, WIDTH, scale=1.0)
target = normal(98, BATCH, WIDTH, scale=1.0)


def block(x, weights):
    gathered = {name: lax.all_gather(shard, "d", tiled=True) for name, shard in weights.items()}
    h = x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gathered["scale"]
    return x + jax.nn.silu(h @ gathered["expand"]) @ gathered["project"]


def loss(parameters, x, target, remat):
    run_block = checkpoint_if(remat)(block)

    def net(parameters, x, target):
        x = run_blocks(run_block, parameters, x)
        return lax.pmean(jnp.mean((x - target) ** 2), "d")

    return jax.shard_map(net, mesh=mesh, in_specs=(P("d"), P("d"), P("d")), out_specs=P())(parameters, x, target)


ARGUMENTS = (parameters, x, target)
build_step = gradient_builder(loss)
