"""Two `shard_map`s in each block, one for attention and one for an MLP, with ordinary layers between them."""

# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import (
    checkpoint_if,
    device_mesh,
    gradient_builder,
    normal,
    run_blocks,
)

mesh = device_mesh((2, 4), ("d", "m"))
LAYERS, WIDTH, HEADS, BATCH, LENGTH = 3, 64, 8, 8, 32
parameters = [
    dict(
        qkv=normal(9 * i, WIDTH, 3 * WIDTH),
        output=normal(9 * i + 1, WIDTH, WIDTH),
        gain=jnp.ones(WIDTH),
        dense_in=normal(9 * i + 2, WIDTH, 4 * WIDTH),
        dense_out=normal(9 * i + 3, 4 * WIDTH, WIDTH),
    )
    for i in range(LAYERS)
]
x = normal(99, BATCH, LENGTH, WIDTH, scale=1.0)


def layer_norm(x, gain):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * gain


@functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("d", None, "m"),) * 3, out_specs=P("d", None, "m"))
def attention(q, k, v):
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / 3.0
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)


@functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("d", "m"), P(), P()), out_specs=P("d", "m"))
def mlp(x, expand, project):
    return jax.nn.silu(x @ expand) @ project


def block(x, weights):
    q, k, v = jnp.split((layer_norm(x, weights["gain"]) @ weights["qkv"]).reshape(BATCH, LENGTH, HEADS, -1), 3, -1)
    x = x + jnp.tanh(attention(q, k, v).reshape(x.shape) @ weights["output"])
    return x + mlp(layer_norm(x, weights["gain"]), weights["dense_in"], weights["dense_out"])


def loss(parameters, x, remat):
    x = run_blocks(checkpoint_if(remat)(block), parameters, x)
    return jnp.mean(x**2)


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss)
