"""A whole step inside one `shard_map`: a scan over microbatches, a scan over layers, a pmean of gradients, and SGD."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, normal

mesh = device_mesh((8,), ("d",))
LAYERS, WIDTH, BATCH, MICROBATCHES = 6, 48, 32, 4
parameters = dict(expand=normal(1, LAYERS, WIDTH, 4 * WIDTH), project=normal(2, LAYERS, 4 * WIDTH, WIDTH))
x = normal(99, MICROBATCHES, 8 * BATCH, WIDTH, scale=1.0)


def block(x, weights):
    return x + jnp.tanh(x @ weights["expand"]) @ weights["project"]


def build_step(remat):
    run_block = checkpoint_if(remat)(block)

    def loss(parameters, x):
        return jnp.mean(lax.scan(lambda x, weights: (run_block(x, weights), None), x, parameters)[0] ** 2)

    def body(parameters, microbatches):
        def accumulate(carry, x):
            value, gradients = jax.value_and_grad(loss)(parameters, x)
            return (carry[0] + value, jax.tree.map(jnp.add, carry[1], gradients)), None

        (value, gradients), _ = lax.scan(accumulate, (0.0, jax.tree.map(jnp.zeros_like, parameters)), microbatches)
        gradients = jax.tree.map(lambda gradients: lax.pmean(gradients, "d"), gradients)
        value = lax.pmean(value, "d")
        return value, jax.tree.map(lambda weights, gradients: weights - 0.1 * gradients, parameters, gradients)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P(None, "d")), out_specs=(P(), P()), check_vma=False)


ARGUMENTS = (parameters, x)
JIT_OPTIONS = dict(donate_argnums=(0,))
