"""A gradient penalty: a second-order gradient through a `shard_map` that contains a psum."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, normal

mesh = device_mesh((4, 2), ("d", "m"))
LAYERS, WIDTH, BATCH = 3, 48, 256
parameters = [
    dict(expand=normal(2 * i, WIDTH, 4 * WIDTH), project=normal(2 * i + 1, 4 * WIDTH, WIDTH)) for i in range(LAYERS)
]
spec = dict(expand=P(None, "m"), project=P("m", None))
x = normal(99, BATCH, WIDTH, scale=1.0)


def block(x, weights):
    return x + lax.psum(jnp.tanh(x @ weights["expand"]) @ weights["project"], "m")


def build_step(remat):
    run_block = checkpoint_if(remat)(block)

    def net(parameters, x):
        for i, weights in enumerate(parameters):
            with jax.named_scope(f"block{i}"):
                x = run_block(x, weights)
        return x

    net_on_devices = jax.shard_map(net, mesh=mesh, in_specs=([spec] * LAYERS, P("d")), out_specs=P("d"))

    def energy(parameters, x):
        return jnp.sum(jnp.tanh(net_on_devices(parameters, x)))

    def loss(parameters, x):
        gradient = jax.grad(energy, 1)(parameters, x)
        return jnp.mean((jnp.linalg.norm(gradient, axis=-1) - 1) ** 2)

    return jax.value_and_grad(loss)


ARGUMENTS = (parameters, x)
