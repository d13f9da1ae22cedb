"""A mixture of experts with one expert per device: top-1 routing, an all_to_all each way, and an auxiliary loss."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, gradient_builder, normal

mesh = device_mesh((8,), ("e",))
EXPERTS, WIDTH, LAYERS, BATCH, CAPACITY = 8, 32, 3, 1024, 24
parameters = [
    dict(
        router=normal(5 * i, WIDTH, EXPERTS, scale=0.5),
        expand=normal(5 * i + 1, EXPERTS, WIDTH, 4 * WIDTH),
        project=normal(5 * i + 2, EXPERTS, 4 * WIDTH, WIDTH),
    )
    for i in range(LAYERS)
]
specs = dict(router=P(), expand=P("e"), project=P("e"))
x = normal(99, BATCH, WIDTH, scale=1.0)


def block(x, weights):
    gates = jax.nn.softmax(x @ weights["router"], -1)
    expert = jnp.argmax(gates, -1)
    top = jnp.take_along_axis(gates, expert[:, None], 1)[:, 0]
    one_hot = jax.nn.one_hot(expert, EXPERTS, dtype=jnp.int32)
    position = (jnp.cumsum(one_hot, 0) - 1) * one_hot
    slot = position.sum(-1)
    fits = slot < CAPACITY
    dispatched = (
        jnp.zeros((EXPERTS, CAPACITY, x.shape[1]), x.dtype)
        .at[expert, jnp.where(fits, slot, CAPACITY)]
        .add(x, mode="drop")
    )
    h = lax.all_to_all(dispatched, "e", 0, 1, tiled=True)  # (1, 8 * CAPACITY, WIDTH)
    h = jax.nn.gelu(h[0] @ weights["expand"][0]) @ weights["project"][0]
    h = lax.all_to_all(h.reshape(1, EXPERTS * CAPACITY, -1), "e", 1, 0, tiled=True)
    y = jnp.where(fits[:, None], h[expert, jnp.minimum(slot, CAPACITY - 1)], 0.0) * top[:, None]
    aux = EXPERTS * jnp.sum(lax.pmean(one_hot.astype(x.dtype).mean(0), "e") * lax.pmean(gates.mean(0), "e"))
    return x + y, (aux, fits.sum())


def loss(parameters, x, remat):
    run_block = checkpoint_if(remat)(block)

    def net(parameters, x):
        aux = 0.0
        kept = []
        for i, weights in enumerate(parameters):
            with jax.named_scope(f"moe{i}"):
                x, (block_aux, block_kept) = run_block(x, weights)
            aux = aux + block_aux
            kept.append(lax.psum(block_kept, "e"))
        return x, aux, jnp.stack(kept)

    y, aux, kept = jax.shard_map(net, mesh=mesh, in_specs=([specs] * LAYERS, P("e")), out_specs=(P("e"), P(), P()))(
        parameters, x
    )
    return jnp.mean(y**2) + 0.01 * aux, kept


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss, has_aux=True)
