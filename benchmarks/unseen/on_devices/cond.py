"""Blocks in a `shard_map` with a `cond` that has a collective in one branch, and a `switch` on `axis_index`."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import (
    MLP_SPEC,
    device_mesh,
    gradient_builder,
    mlp_parameters,
    normal,
)

mesh = device_mesh((2, 4), ("d", "m"))
LAYERS, WIDTH, BATCH = 4, 64, 128
parameters = mlp_parameters(LAYERS, WIDTH)
x = normal(99, BATCH, WIDTH, scale=1.0)


def block(x, weights, step, i):
    h = jax.nn.silu(x @ weights["expand"])
    h = lax.switch(lax.axis_index("m"), [jnp.sin, jnp.tanh, jax.nn.relu, lambda h: h * h], h)
    y = lax.psum(h @ weights["project"], "m")
    return lax.cond(
        (step + i) % 2 == 0,
        lambda x, y: x + jnp.tanh(y) * y,
        lambda x, y: x - lax.pmean(y, "d").mean() * jnp.sin(y),
        x,
        y,
    )


def loss(parameters, x, step, remat):
    run_block = jax.checkpoint(block, static_argnums=(3,)) if remat else block

    def net(parameters, x, step):
        for i, weights in enumerate(parameters):
            with jax.named_scope(f"block{i}"):
                x = run_block(x, weights, step, i)
        return x

    y = jax.shard_map(net, mesh=mesh, in_specs=([MLP_SPEC] * LAYERS, P("d"), P()), out_specs=P("d"))(
        parameters, x, step
    )
    return jnp.mean(y**2)


ARGUMENTS = (parameters, x, jnp.int32(3))
build_step = gradient_builder(loss)
