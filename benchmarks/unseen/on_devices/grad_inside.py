"""The gradient and the Adam update inside one `shard_map`, with a sharded and donated optimizer state (ZeRO-1)."""

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
LAYERS, WIDTH, BATCH = 4, 64, 256
parameters = mlp_parameters(LAYERS, WIDTH, factor=8)
specs = [MLP_SPEC] * LAYERS
x = normal(99, BATCH, WIDTH, scale=1.0)
target = normal(98, BATCH, WIDTH, scale=1.0)
mu = jax.tree.map(jnp.zeros_like, parameters)
nu = jax.tree.map(jnp.ones_like, parameters)
state_specs = [dict(expand=P("d", "m"), project=P(("m", "d"), None))] * LAYERS


def block(x, weights):
    return x + lax.psum(jax.nn.gelu(x @ weights["expand"]) @ weights["project"], "m")


def build_step(remat):
    run_block = checkpoint_if(remat)(block)

    def loss(parameters, x, target):
        x = run_blocks(run_block, parameters, x)
        return jnp.mean((x - target) ** 2)

    def body(parameters, mu, nu, x, target, count):
        varying = jax.tree.map(lambda weights: lax.pcast(weights, ("d",), to="varying"), parameters)
        value, gradients = jax.value_and_grad(loss)(varying, x, target)
        gradients = jax.tree.map(
            lambda gradients: lax.psum_scatter(gradients, "d", scatter_dimension=0, tiled=True) / 4, gradients
        )
        mu = jax.tree.map(lambda m, gradients: 0.9 * m + 0.1 * gradients, mu, gradients)
        nu = jax.tree.map(lambda v, gradients: 0.99 * v + 0.01 * gradients * gradients, nu, gradients)
        device = lax.axis_index("d")

        def update(weights, m, v):
            rows = weights.shape[0] // 4
            updated = lax.dynamic_slice_in_dim(weights, device * rows, rows, 0) - 0.01 * m / (jnp.sqrt(v) + 1e-8)
            return (
                lax.all_gather_invariant(updated, "d", tiled=True)  # pyright: ignore[reportAttributeAccessIssue]
                if hasattr(lax, "all_gather_invariant")
                else lax.psum(
                    lax.dynamic_update_slice_in_dim(
                        lax.pcast(jnp.zeros_like(weights), ("d",), to="varying"), updated, device * rows, 0
                    ),
                    "d",
                )
            )

        return jax.tree.map(update, parameters, mu, nu), mu, nu, lax.pmean(value, "d"), count + 1

    return jax.shard_map(
        body,
        mesh=mesh,
        in_specs=(specs, state_specs, state_specs, P("d"), P("d"), P()),
        out_specs=(specs, state_specs, state_specs, P(), P()),
    )


ARGUMENTS = (parameters, mu, nu, x, target, jnp.int32(0))
JIT_OPTIONS = dict(donate_argnums=(0, 1, 2))
