"""Nested `shard_map`s: the outer one is manual over the axis d, and the inner one over the axis m."""

# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, normal

mesh = device_mesh((2, 4), ("d", "m"))
LAYERS, WIDTH, BATCH = 3, 32, 128
parameters = [
    dict(expand=normal(2 * i, WIDTH, 4 * WIDTH), project=normal(2 * i + 1, 4 * WIDTH, WIDTH)) for i in range(LAYERS)
]
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
    run_block = checkpoint_if(remat)(block)

    def net(parameters, x):
        for i, weights in enumerate(parameters):
            with jax.named_scope(f"block{i}"):
                x = run_block(x, weights)
        return x

    y = jax.shard_map(net, mesh=mesh, in_specs=(P(), P("d")), out_specs=P("d"), axis_names={"d"}, check_vma=True)(
        parameters, x
    )
    return jnp.mean(y**2)


ARGUMENTS = (parameters, x)


def build_step(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
