"""A mesh with explicit axis types, set by `jax.set_mesh`, and a `shard_map` without the argument `mesh`."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, gradient_builder, normal, run_blocks

mesh = jax.make_mesh((4, 2), ("d", "m"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)
LAYERS, WIDTH, BATCH = 4, 64, 256


def put(array, spec):
    return jax.device_put(array, NamedSharding(mesh, spec))


parameters = [
    dict(
        expand=put(normal(2 * i, WIDTH, 4 * WIDTH), P(None, "m")),
        project=put(normal(2 * i + 1, 4 * WIDTH, WIDTH), P("m", None)),
    )
    for i in range(LAYERS)
]
x = put(normal(99, BATCH, WIDTH, scale=1.0), P("d"))


def inner(x, expand, project):
    return lax.psum(jax.nn.gelu(x @ expand) @ project, "m")


def block(x, weights):
    y = jax.shard_map(inner, in_specs=(P("d"), P(None, "m"), P("m", None)), out_specs=P("d"))(
        jnp.sin(x), weights["expand"], weights["project"]
    )
    return x + jnp.tanh(y)


def loss(parameters, x, remat):
    x = run_blocks(checkpoint_if(remat)(block), parameters, x)
    return jnp.mean(x**2)


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss)
