"""Sequence parallelism in bf16: an all_gather before and a psum_scatter after each pair of matrix products."""

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
    normal,
    run_blocks,
)

mesh = device_mesh((2, 4), ("d", "m"))
LAYERS, WIDTH, BATCH, LENGTH = 4, 64, 8, 64
parameters = [
    dict(expand=normal(2 * i, WIDTH, 8 * WIDTH), project=normal(2 * i + 1, 8 * WIDTH, WIDTH), scale=jnp.ones(WIDTH))
    for i in range(LAYERS)
]
spec = dict(expand=P(None, "m"), project=P("m", None), scale=P())
x = normal(99, BATCH, LENGTH, WIDTH, scale=1.0)


def block(x, weights):
    h = x * lax.rsqrt(jnp.mean(x.astype(jnp.float32) ** 2, -1, keepdims=True) + 1e-6).astype(x.dtype) * weights["scale"]
    h = lax.all_gather(h, "m", axis=1, tiled=True)
    h = jax.nn.gelu(h @ weights["expand"])
    return x + lax.psum_scatter(h @ weights["project"], "m", scatter_dimension=1, tiled=True)


def loss(parameters, x, remat):
    parameters = jax.tree.map(lambda array: array.astype(jnp.bfloat16), parameters)
    net = functools.partial(run_blocks, checkpoint_if(remat)(block), scope="layer_")

    y = jax.shard_map(net, mesh=mesh, in_specs=([spec] * LAYERS, P("d", "m")), out_specs=P("d", "m"), check_vma=False)(
        parameters, x.astype(jnp.bfloat16)
    )
    return jnp.mean(y.astype(jnp.float32) ** 2)


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss)
