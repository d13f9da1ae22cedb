"""Ring attention over a sequence sharded across devices: a scan moves keys and values with ppermute."""

# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import (
    checkpoint_if,
    device_mesh,
    gradient_builder,
    normal,
    run_blocks,
)

mesh = device_mesh((8,), ("s",))
LAYERS, WIDTH, HEADS, BATCH, LENGTH = 3, 32, 4, 2, 512
parameters = [{key: normal(10 * i + j, WIDTH, WIDTH) for j, key in enumerate("qkvo")} for i in range(LAYERS)]
x = normal(99, BATCH, LENGTH, WIDTH, scale=1.0)


def ring(q, k, v):
    devices = 8
    perm = [(i, (i + 1) % devices) for i in range(devices)]

    def body(carry, _):
        k, v, maximum, total, output = carry
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(q.shape[-1])
        new_maximum = jnp.maximum(maximum, scores.max(-1))
        exponentials = jnp.exp(scores - new_maximum[..., None])
        correction = jnp.exp(maximum - new_maximum)
        total = total * correction + exponentials.sum(-1)
        output = output * correction[..., None] + jnp.einsum("bhts,bshd->bhtd", exponentials, v)
        return (lax.ppermute(k, "s", perm), lax.ppermute(v, "s", perm), new_maximum, total, output), None

    no_total = jnp.einsum("bthd->bht", q) * 0
    no_maximum = no_total - 1e30
    no_output = jnp.einsum("bthd->bhtd", q) * 0
    (*_, total, output), _ = lax.scan(body, (k, v, no_maximum, no_total, no_output), None, length=devices)
    return jnp.einsum("bhtd->bthd", output / total[..., None])


def block(x, weights):
    q, k, v = ((x @ weights[key]).reshape(*x.shape[:2], HEADS, -1) for key in "qkv")
    return x + jnp.tanh(ring(q, k, v).reshape(x.shape) @ weights["o"])


def loss(parameters, x, remat):
    net = functools.partial(run_blocks, checkpoint_if(remat)(block))

    y = jax.shard_map(net, mesh=mesh, in_specs=(P(), P(None, "s")), out_specs=P(None, "s"))(parameters, x)
    return jnp.mean(jnp.sin(y) ** 2)


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss)
