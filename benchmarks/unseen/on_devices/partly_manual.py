"""A partly manual mesh: the `shard_map` is manual over the axis d, and XLA partitions over the axis m."""

# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import (
    checkpoint_if,
    device_mesh,
    gradient_builder,
    mlp_parameters,
    normal,
    run_blocks,
)

mesh = device_mesh((4, 2), ("d", "m"))
LAYERS, WIDTH, BATCH, LENGTH = 4, 32, 32, 32
parameters = mlp_parameters(LAYERS, WIDTH)
parameters = [
    dict(
        expand=jax.device_put(weights["expand"], NamedSharding(mesh, P(None, "m"))),
        project=jax.device_put(weights["project"], NamedSharding(mesh, P("m", None))),
    )
    for weights in parameters
]
x = normal(99, BATCH, LENGTH, WIDTH, scale=1.0)


def block(x, weights):
    mean = lax.psum(jnp.sum(x, axis=(0, 1)), "d") / (BATCH * LENGTH)
    return x + jax.nn.gelu((x - mean) @ weights["expand"]) @ weights["project"]


def loss(parameters, x, remat):
    net = functools.partial(run_blocks, checkpoint_if(remat)(block))

    y = jax.shard_map(net, mesh=mesh, in_specs=(P(), P("d")), out_specs=P("d"), axis_names={"d"})(parameters, x)
    return jnp.mean(jnp.cos(y))


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss)
