"""Gradient accumulation: a scan over microbatches, with an inner scan over layers that call a `shard_map`."""

# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import MLP_SPEC, checkpoint_if, device_mesh, normal

mesh = device_mesh((2, 4), ("d", "m"))
LAYERS, WIDTH, BATCH, MICROBATCHES = 6, 48, 64, 4
parameters = dict(expand=normal(1, LAYERS, WIDTH, 4 * WIDTH), project=normal(2, LAYERS, 4 * WIDTH, WIDTH))
x = normal(99, MICROBATCHES, BATCH, WIDTH, scale=1.0)


@functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("d"), MLP_SPEC), out_specs=P("d"))
def layer(x, weights):
    return x + lax.psum(jax.nn.gelu(jnp.sin(x) @ weights["expand"]) @ weights["project"], "m")


def loss(parameters, x, remat):
    run_layer = checkpoint_if(remat)(layer)
    x, _ = lax.scan(lambda x, weights: (run_layer(x, weights), None), x, parameters)
    return jnp.mean(x**2)


def build_step(remat):
    value_and_gradients = jax.value_and_grad(functools.partial(loss, remat=remat))

    def step(parameters, microbatches):
        def accumulate(carry, x):
            value, gradients = value_and_gradients(parameters, x)
            return (carry[0] + value, jax.tree.map(jnp.add, carry[1], gradients)), value

        return lax.scan(accumulate, (0.0, jax.tree.map(jnp.zeros_like, parameters)), microbatches)

    return step


ARGUMENTS = (parameters, x)
