"""Two recurrent layers in a `shard_map`. Their scan gathers the sharded hidden state at every time step."""

# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, normal

mesh = device_mesh((8,), ("m",))
LAYERS, WIDTH, BATCH, LENGTH = 2, 64, 16, 48
parameters = [
    dict(
        input=normal(3 * i, WIDTH, 3 * WIDTH, scale=0.2).reshape(WIDTH, 3, WIDTH),
        hidden=normal(3 * i + 1, WIDTH, 3 * WIDTH, scale=0.2).reshape(WIDTH, 3, WIDTH),
    )
    for i in range(LAYERS)
]
spec = dict(input=P(None, None, "m"), hidden=P(None, None, "m"))
x = normal(99, LENGTH, BATCH, WIDTH, scale=1.0)


def cell(h, x, weights):
    gathered = lax.all_gather(h, "m", axis=1, tiled=True)
    from_input = jnp.einsum("bd,dgk->bgk", x, weights["input"])
    from_hidden = jnp.einsum("bd,dgk->bgk", gathered, weights["hidden"])
    reset = jax.nn.sigmoid(from_input[:, 0] + from_hidden[:, 0])
    update = jax.nn.sigmoid(from_input[:, 1] + from_hidden[:, 1])
    candidate = jnp.tanh(from_input[:, 2] + reset * from_hidden[:, 2])
    return (1 - update) * candidate + update * h


def loss(parameters, x, remat):
    run_cell = checkpoint_if(remat)(cell)

    def net(parameters, x):
        for weights in parameters:
            initial = lax.pcast(jnp.zeros((BATCH, WIDTH // 8)), ("m",), to="varying")

            def carry_and_state(h, x, weights=weights):
                state = run_cell(h, x, weights)
                return state, state

            _, states = lax.scan(carry_and_state, initial, x)
            x = lax.all_gather(states, "m", axis=2, tiled=True)
        return states

    y = jax.shard_map(net, mesh=mesh, in_specs=([spec] * LAYERS, P()), out_specs=P(None, None, "m"))(parameters, x)
    return jnp.mean(y**2)


ARGUMENTS = (parameters, x)


def build_step(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
