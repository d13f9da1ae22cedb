"""FSDP in a scan over stacked layers. The body of the scan gathers sharded parameters and computes in bf16."""

# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, normal

mesh = device_mesh((8,), ("d",))
LAYERS, WIDTH, BATCH = 6, 64, 256
parameters = dict(expand=normal(1, LAYERS, WIDTH, 4 * WIDTH), project=normal(2, LAYERS, 4 * WIDTH, WIDTH))
x = normal(99, BATCH, WIDTH, scale=1.0)


def block(x, weights):
    expand, project = (
        lax.all_gather(weights[key].astype(jnp.bfloat16), "d", axis=0, tiled=True) for key in ("expand", "project")
    )
    return x + (jax.nn.relu(x.astype(jnp.bfloat16) @ expand) ** 2 @ project).astype(jnp.float32)


def loss(parameters, x, remat):
    run_block = checkpoint_if(remat)(block)

    def net(parameters, x):
        return lax.scan(lambda x, weights: (run_block(x, weights), None), x, parameters)[0]

    y = jax.shard_map(net, mesh=mesh, in_specs=(P(None, "d"), P("d")), out_specs=P("d"))(parameters, x)
    return jnp.mean(y**2)


ARGUMENTS = (parameters, x)


def build_step(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
