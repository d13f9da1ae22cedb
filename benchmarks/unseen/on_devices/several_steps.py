"""Several training steps in one jit: a scan over steps, each with the gradient of a `shard_map` and momentum."""

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
    mlp_parameters,
    normal,
    run_blocks,
)

mesh = device_mesh((4, 2), ("d", "m"))
LAYERS, WIDTH, BATCH, STEPS = 4, 48, 256, 3
parameters = mlp_parameters(LAYERS, WIDTH)
specs = [MLP_SPEC] * LAYERS
x = normal(99, STEPS, BATCH, WIDTH, scale=1.0)


def block(x, weights):
    return x + lax.psum(jax.nn.gelu(x @ weights["expand"]) @ weights["project"], "m")


def build_step(remat):
    run_block = checkpoint_if(remat)(block)

    def net(parameters, x):
        x = run_blocks(run_block, parameters, x)
        return lax.pmean((x**2).mean(), "d")

    loss = jax.shard_map(net, mesh=mesh, in_specs=(specs, P("d")), out_specs=P())

    def train(parameters, velocity, batches):
        def train_step(carry, x):
            parameters, velocity = carry
            value, gradients = jax.value_and_grad(loss)(parameters, x)
            velocity = jax.tree.map(lambda momentum, gradients: 0.9 * momentum + gradients, velocity, gradients)
            parameters = jax.tree.map(lambda weights, momentum: weights - 0.01 * momentum, parameters, velocity)
            return (parameters, velocity), value

        return lax.scan(train_step, (parameters, velocity), batches)

    return train


ARGUMENTS = (parameters, jax.tree.map(jnp.zeros_like, parameters), x)
JIT_OPTIONS = dict(donate_argnums=(0, 1))
