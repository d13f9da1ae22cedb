"""A convolutional network with batch normalization across devices, and running statistics as auxiliary results."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, gradient_builder, normal

mesh = device_mesh((2, 2, 2), ("a", "b", "c"))
LAYERS, CHANNELS, BATCH = 4, 16, 64
AXES = ("a", "b", "c")
parameters = [
    dict(kernel=normal(i, 3, 3, CHANNELS, CHANNELS), gain=jnp.ones(CHANNELS), bias=jnp.zeros(CHANNELS))
    for i in range(LAYERS)
]
statistics = [dict(mean=jnp.zeros(CHANNELS), variance=jnp.ones(CHANNELS)) for i in range(LAYERS)]
x = normal(99, BATCH, 16, 16, CHANNELS, scale=1.0)


def block(x, weights, running):
    y = lax.conv_general_dilated(x, weights["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    mean = lax.pmean(y.mean((0, 1, 2)), AXES)
    variance = lax.pmean((y * y).mean((0, 1, 2)), AXES) - mean * mean
    updated = dict(mean=0.9 * running["mean"] + 0.1 * mean, variance=0.9 * running["variance"] + 0.1 * variance)
    return x + jax.nn.relu((y - mean) * lax.rsqrt(variance + 1e-5) * weights["gain"] + weights["bias"]), updated


def loss(parameters, statistics, x, remat):
    run_block = checkpoint_if(remat)(block)

    def net(parameters, statistics, x):
        all_updated = []
        for i, (weights, running) in enumerate(zip(parameters, statistics, strict=True)):
            with jax.named_scope(f"block{i}"):
                x, updated = run_block(x, weights, running)
                all_updated.append(updated)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return lax.pmean((x.mean((1, 2)) ** 2).mean(), AXES), all_updated

    return jax.shard_map(net, mesh=mesh, in_specs=(P(), P(), P(AXES)), out_specs=(P(), P()))(parameters, statistics, x)


ARGUMENTS = (parameters, statistics, x)
build_step = gradient_builder(loss, has_aux=True)
