"""A gradient penalty: a second-order gradient through a `shard_map` that contains a psum."""

# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import (
    MLP_SPEC,
    checkpoint_if,
    device_mesh,
    mlp_parameters,
    normal,
    run_blocks,
)

mesh = device_mesh((4, 2), ("d", "m"))
LAYERS, WIDTH, BATCH = 3, 48, 256
parameters = mlp_parameters(LAYERS, WIDTH)
x = normal(99, BATCH, WIDTH, scale=1.0)


def block(x, weights):
    return x + lax.psum(jnp.tanh(x @ weights["expand"]) @ weights["project"], "m")


def build_step(remat):
    net = functools.partial(run_blocks, checkpoint_if(remat)(block))

    net_on_devices = jax.shard_map(net, mesh=mesh, in_specs=([MLP_SPEC] * LAYERS, P("d")), out_specs=P("d"))

    def energy(parameters, x):
        return jnp.sum(jnp.tanh(net_on_devices(parameters, x)))

    def loss(parameters, x):
        gradient = jax.grad(energy, 1)(parameters, x)
        return jnp.mean((jnp.linalg.norm(gradient, axis=-1) - 1) ** 2)

    return jax.value_and_grad(loss)


ARGUMENTS = (parameters, x)
