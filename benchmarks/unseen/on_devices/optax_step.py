"""A step with optax: the gradient of a `shard_map`, clipping by global norm, and AdamW on donated state."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, normal

mesh = device_mesh((4, 2), ("d", "m"))
LAYERS, WIDTH, BATCH = 4, 64, 256
parameters = [
    dict(expand=normal(2 * i, WIDTH, 8 * WIDTH), project=normal(2 * i + 1, 8 * WIDTH, WIDTH), scale=jnp.ones(WIDTH))
    for i in range(LAYERS)
]
specs = [dict(expand=P(None, "m"), project=P("m", None), scale=P())] * LAYERS
x = normal(99, BATCH, WIDTH, scale=1.0)
target = normal(98, BATCH, WIDTH, scale=1.0)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
state = optimizer.init(parameters)


def block(x, weights):
    h = x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weights["scale"]
    return x + lax.psum(jax.nn.gelu(h @ weights["expand"]) @ weights["project"], "m")


def build_step(remat):
    run_block = checkpoint_if(remat)(block)

    def net(parameters, x, target):
        for weights in parameters:
            x = run_block(x, weights)
        return lax.pmean(jnp.mean((x - target) ** 2), "d")

    loss = jax.shard_map(net, mesh=mesh, in_specs=(specs, P("d"), P("d")), out_specs=P())

    def step(parameters, state, x, target):
        value, gradients = jax.value_and_grad(loss)(parameters, x, target)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, dict(loss=value, norm=optax.global_norm(gradients))

    return step


ARGUMENTS = (parameters, state, x, target)
JIT_OPTIONS = dict(donate_argnums=(0, 1))
