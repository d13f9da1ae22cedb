"""A pipeline of eight stages: a scan over ticks moves microbatches between devices with ppermute."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, gradient_builder, normal

mesh = device_mesh((8,), ("p",))
STAGES, WIDTH, MICROBATCHES, BATCH = 8, 48, 8, 32
parameters = dict(expand=normal(1, STAGES, 2, WIDTH, 4 * WIDTH), project=normal(2, STAGES, 2, 4 * WIDTH, WIDTH))
x = normal(99, MICROBATCHES, BATCH, WIDTH, scale=1.0)


def stage(weights, x):
    for i in range(2):
        x = x + jnp.tanh(x @ weights["expand"][0, i]) @ weights["project"][0, i]
    return x


def loss(parameters, x, remat):
    run_stage = checkpoint_if(remat)(stage)

    def net(parameters, x):
        index_of_stage = lax.axis_index("p")
        is_first = index_of_stage == 0
        is_last = index_of_stage == STAGES - 1

        def tick(carry, time):
            received, outputs = carry
            stage_input = jnp.where(
                is_first, lax.dynamic_index_in_dim(x, jnp.minimum(time, MICROBATCHES - 1), 0, False), received
            )
            y = run_stage(parameters, stage_input)
            index = jnp.clip(time - (STAGES - 1), 0, MICROBATCHES - 1)
            outputs = jnp.where(
                is_last & (time >= STAGES - 1), lax.dynamic_update_index_in_dim(outputs, y, index, 0), outputs
            )
            return (lax.ppermute(y, "p", [(source, (source + 1) % STAGES) for source in range(STAGES)]), outputs), None

        nothing_received = lax.pcast(jnp.zeros_like(x[0]), ("p",), to="varying")
        no_outputs = lax.pcast(jnp.zeros_like(x), ("p",), to="varying")
        (_, outputs), _ = lax.scan(tick, (nothing_received, no_outputs), jnp.arange(MICROBATCHES + STAGES - 1))
        return lax.psum(jnp.where(is_last, outputs, 0.0), "p")

    y = jax.shard_map(net, mesh=mesh, in_specs=(P("p"), P()), out_specs=P())(parameters, x)
    return jnp.mean(y**2)


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss)
