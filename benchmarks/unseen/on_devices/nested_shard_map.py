"""Nested `shard_map`s: the outer one is manual over the axis d, and the inner one over the axis m."""

# pyright: basic

from __future__ import annotations

import functools

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
    run_blocks,
)

mesh = device_mesh((2, 4), ("d", "m"))
LAYERS, WIDTH, BATCH = 3, 32, 128
parameters = mlp_parameters(LAYERS, WIDTH)
x = normal(99, BATCH, WIDTH, scale=1.0)


def inner(x, expand, project):
    return lax.psum(jax.nn.gelu(x @ expand) @ project, "m")


def block(x, weights):
    return x + jax.shard_map(
        jax.checkpoint(inner),
        in_specs=(P(), P(None, "m"), P("m", None)),
        out_specs=P(),
        axis_names={"m"},
        check_vma=True,
    )(jnp.sin(x), weights["expand"], weights["project"])


def loss(parameters, x, remat):
    net = functools.partial(run_blocks, checkpoint_if(remat)(block))

    y = jax.shard_map(net, mesh=mesh, in_specs=(P(), P("d")), out_specs=P("d"), axis_names={"d"}, check_vma=True)(
        parameters, x
    )
    return jnp.mean(y**2)


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss)
