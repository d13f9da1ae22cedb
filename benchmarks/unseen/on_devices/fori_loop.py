"""Deep equilibrium blocks in a `shard_map`: a `fori_loop` without gradients, then one differentiable iteration.

An inner `jax.checkpoint` with a policy is part of the step with and without remat.
"""

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
    gradient_builder,
    mlp_parameters,
    normal,
)

mesh = device_mesh((4, 2), ("d", "m"))
LAYERS, WIDTH, BATCH = 4, 64, 256
parameters = mlp_parameters(LAYERS, WIDTH)
x = normal(99, BATCH, WIDTH, scale=1.0)


@functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
def feed_forward(x, weights):
    return jax.nn.gelu(jax.nn.gelu(x @ weights["expand"]) * 2.0) @ weights["project"]


def block(x, weights):
    z = lax.fori_loop(0, 3, lambda _, z: jnp.tanh(lax.psum(feed_forward(z, weights), "m") + x), lax.stop_gradient(x))
    return x + lax.psum(feed_forward(z, weights), "m")


def loss(parameters, x, remat):
    run_block = checkpoint_if(remat)(block)

    def net(parameters, x):
        for weights in parameters:
            x = run_block(x, weights)
        return x

    y = jax.shard_map(net, mesh=mesh, in_specs=([MLP_SPEC] * LAYERS, P("d")), out_specs=P("d"))(parameters, x)
    return jnp.mean(jnp.log1p(y * y))


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss)
