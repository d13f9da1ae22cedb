"""Dropout in a `shard_map`, with `axis_index` folded into the keys, and blocks without scope names."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import (
    MLP_SPEC,
    checkpoint_if,
    device_mesh,
    gradient_builder,
    mlp_parameters,
    normal,
)

mesh = device_mesh((1, 8), ("d", "m"))
LAYERS, WIDTH, BATCH = 5, 64, 128
parameters = mlp_parameters(LAYERS, WIDTH, factor=8)
x = normal(99, BATCH, WIDTH, scale=1.0)
labels = jnp.arange(BATCH) % WIDTH


def drop(key, x):
    mask = jax.random.bernoulli(key, 0.9, x.shape)
    return jnp.where(mask, x / 0.9, 0.0)


def block(x, weights, key):
    h = drop(jax.random.fold_in(key, lax.axis_index("m")), jax.nn.relu(x @ weights["expand"]))
    return x + drop(jax.random.fold_in(key, 77), lax.psum(h @ weights["project"], "m"))


def loss(parameters, key, x, labels, remat):
    run_block = checkpoint_if(remat)(block)

    def net(parameters, key, x, labels):
        key = jax.random.fold_in(key, lax.axis_index("d"))
        for i, weights in enumerate(parameters):
            x = run_block(x, weights, jax.random.fold_in(key, i))
        log_probabilities = jax.nn.log_softmax(x)
        return lax.pmean(-jnp.take_along_axis(log_probabilities, labels[:, None], 1).mean(), "d")

    return jax.shard_map(
        net, mesh=mesh, in_specs=([MLP_SPEC] * LAYERS, P(), P("d"), P("d")), out_specs=P(), check_vma=False
    )(parameters, key, x, labels)


ARGUMENTS = (parameters, jax.random.key(3), x, labels)
build_step = gradient_builder(loss)
