"""A function in a `shard_map` with several results, among them one value twice and an unchanged input."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, gradient_builder, normal

mesh = device_mesh((2, 2, 2), ("a", "b", "c"))
LAYERS, WIDTH, BATCH = 4, 64, 256
parameters = [dict(weights=normal(i, WIDTH, WIDTH, scale=0.2), scale=jnp.float32(1.0 + i / 10)) for i in range(LAYERS)]
x = normal(99, BATCH, WIDTH, scale=1.0)


def block(x, layer):
    y = jnp.tanh(x @ layer["weights"]) * layer["scale"]
    scale = lax.pmax(lax.stop_gradient(jnp.abs(y).max()), ("a", "b", "c"))
    total = lax.psum(jnp.sum(y), ("a", "b")) / 1e3
    return x + jnp.sin(y / scale) * total, total


def loss(parameters, x, remat):
    run_block = checkpoint_if(remat)(block)

    def net(parameters, x):
        totals = []
        unchanged = x
        for i, layer in enumerate(parameters):
            with jax.named_scope(f"block{i}"):
                x, total = run_block(x, layer)
            totals.append(lax.pmean(total, "c"))
        return x, x, unchanged, jnp.stack(totals), lax.psum((x * x).sum(), ("a", "b", "c"))

    over_all_axes = P(("a", "b", "c"))
    y, y_again, unchanged, totals, square_sum = jax.shard_map(
        net, mesh=mesh, in_specs=(P(), over_all_axes), out_specs=(over_all_axes, over_all_axes, over_all_axes, P(), P())
    )(parameters, x)
    value = jnp.mean(y * jnp.cos(y_again)) + 1e-3 * jnp.sum(totals**2) + 1e-6 * square_sum + jnp.mean(unchanged * y)
    return value, (y, y_again, totals)


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss, argnums=(0, 1), has_aux=True)
