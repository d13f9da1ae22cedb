"""Megatron's f and g operators, int8 quantization and SwiGLU as `custom_vjp` functions in a `shard_map`."""

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

mesh = device_mesh((1, 8), ("d", "m"))
LAYERS, WIDTH, BATCH = 4, 64, 256
parameters = [
    dict(
        gate=normal(3 * i, WIDTH, 8 * WIDTH),
        up=normal(3 * i + 2, WIDTH, 8 * WIDTH),
        project=normal(3 * i + 1, 8 * WIDTH, WIDTH),
    )
    for i in range(LAYERS)
]
spec = dict(gate=P(None, "m"), up=P(None, "m"), project=P("m", None))
x = normal(99, BATCH, WIDTH, scale=1.0)


@jax.custom_vjp
def sum_gradients(x):
    return x


sum_gradients.defvjp(lambda x: (x, None), lambda _, g: (lax.psum(g, "m"),))


@jax.custom_vjp
def sum_values(x):
    return lax.psum(x, "m")


sum_values.defvjp(lambda x: (lax.psum(x, "m"), None), lambda _, g: (g,))


@jax.custom_vjp
def quantize(w):
    return jnp.round(w * 64) / 64


def quantize_forward(w):
    rounded = jnp.round(w * 64).astype(jnp.int8)
    return rounded.astype(w.dtype) / 64, (jnp.abs(w) < 1.9)


quantize.defvjp(quantize_forward, lambda mask, g: (jnp.where(mask, g, 0.0),))


@jax.custom_vjp
def swiglu(gate, up):
    return jax.nn.silu(gate) * up


def swiglu_backward(residuals, g):
    gate, up = residuals
    sigmoid = jax.nn.sigmoid(gate)
    return g * up * (sigmoid + gate * sigmoid * (1 - sigmoid)), g * gate * sigmoid


swiglu.defvjp(lambda gate, up: (swiglu(gate, up), (gate, up)), swiglu_backward)


def block(x, weights):
    h = sum_gradients(x)
    return x + sum_values(swiglu(h @ quantize(weights["gate"]), h @ weights["up"]) @ weights["project"])


def loss(parameters, x, remat):
    net = functools.partial(run_blocks, checkpoint_if(remat)(block))

    y = jax.shard_map(net, mesh=mesh, in_specs=([spec] * LAYERS, P("d")), out_specs=P("d"), check_vma=False)(
        parameters, x
    )
    return jnp.mean(jnp.square(y))


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss)
