"""A scan over layers with all_to_all attention (Ulysses). The scan carries a counter and stacks auxiliary losses."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, gradient_builder, normal

mesh = device_mesh((8,), ("s",))
LAYERS, WIDTH, HEADS, BATCH, LENGTH = 4, 32, 8, 2, 128
parameters = dict(qkv=normal(1, LAYERS, WIDTH, 3 * WIDTH), output=normal(2, LAYERS, WIDTH, WIDTH))
x = normal(99, BATCH, LENGTH, WIDTH, scale=1.0)


def block(x, weights, key, count):
    qkv = (x @ weights["qkv"]).reshape(BATCH, LENGTH // 8, 3, HEADS, -1)
    qkv = lax.all_to_all(qkv, "s", 3, 1, tiled=True)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    scores = jnp.einsum("bthd,bshd->bhts", q, k)
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -jnp.inf)
    attended = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
    attended = lax.all_to_all(attended, "s", 1, 2, tiled=True).reshape(x.shape)
    mask = jax.random.bernoulli(jax.random.fold_in(key, count), 0.9, x.shape)
    y = x + jnp.where(mask, attended @ weights["output"], 0.0)
    return y, lax.psum((y * y).mean(), "s")


def loss(parameters, x, key, remat):
    run_block = checkpoint_if(remat)(block)

    def net(parameters, x, key):
        key = jax.random.fold_in(key, lax.axis_index("s"))

        def body(carry, weights):
            x, count = carry
            y, penalties = run_block(x, weights, key, count)
            return (y, count + 1), penalties

        (x, count), penalties = lax.scan(body, (x, jnp.int32(0)), parameters)
        return x, penalties, count

    y, penalties, count = jax.shard_map(
        net, mesh=mesh, in_specs=(P(), P(None, "s"), P()), out_specs=(P(None, "s"), P(), P())
    )(parameters, x, key)
    return jnp.mean(y**2) + 0.01 * penalties.sum(), (penalties, count)


ARGUMENTS = (parameters, x, jax.random.key(0))
build_step = gradient_builder(loss, has_aux=True)
