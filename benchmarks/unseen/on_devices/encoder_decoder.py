"""An encoder and a decoder in one `shard_map`, and a loss that is a `custom_vjp` around another `shard_map`."""

# pyright: basic

from __future__ import annotations

import jax
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
WIDTH, HEADS, BATCH, LENGTH = 48, 4, 8, 32


def attention_weights(seed):
    return {key: normal(seed + index, WIDTH, WIDTH) for index, key in enumerate("qkvo")}


attention_specs = dict(q=P(None, "m"), k=P(None, "m"), v=P(None, "m"), o=P("m", None))
parameters = dict(
    enc=[attention_weights(10 * i) for i in range(2)],
    dec=[dict(self=attention_weights(100 + 20 * i), cross=attention_weights(110 + 20 * i)) for i in range(3)],
)
specs = dict(enc=[attention_specs] * 2, dec=[dict(self=attention_specs, cross=attention_specs)] * 3)
x = normal(99, BATCH, LENGTH, WIDTH, scale=1.0)
y = normal(98, BATCH, LENGTH, WIDTH, scale=1.0)


def attention(x, memory, weights):
    q, k, v = (
        (source @ weights[key]).reshape(*source.shape[:2], HEADS // 4, -1)
        for source, key in ((x, "q"), (memory, "k"), (memory, "v"))
    )
    return lax.psum(jax.nn.dot_product_attention(q, k, v).reshape(*x.shape[:2], -1) @ weights["o"], "m")


def encoder_block(x, weights):
    return jax.nn.standardize(x + attention(x, x, weights))


def decoder_block(x, memory, weights):
    x = x + attention(x, x, weights["self"])
    return jax.nn.standardize(x + attention(x, memory, weights["cross"]))


@jax.custom_vjp
def mse(prediction, target):
    return jax.shard_map(
        lambda prediction, target: lax.pmean(((prediction - target) ** 2).mean(), "d"),
        mesh=mesh,
        in_specs=(P("d"), P("d")),
        out_specs=P(),
    )(prediction, target)


mse.defvjp(
    lambda prediction, target: (mse(prediction, target), (prediction, target)),
    lambda residuals, cotangent: (
        jax.shard_map(
            lambda prediction, target, cotangent: cotangent * 2 * (prediction - target) / (prediction.size * 2),
            mesh=mesh,
            in_specs=(P("d"), P("d"), P()),
            out_specs=P("d"),
        )(*residuals, cotangent),  # pyright: ignore[reportCallIssue]
        None,
    ),
)


def loss(parameters, x, y, remat):
    run_encoder_block, run_decoder_block = checkpoint_if(remat)(encoder_block), checkpoint_if(remat)(decoder_block)

    def net(parameters, x, y):
        x = run_blocks(run_encoder_block, parameters["enc"], x, scope="enc")
        for i, weights in enumerate(parameters["dec"]):
            with jax.named_scope(f"dec{i}"):
                y = run_decoder_block(y, x, weights)
        return y

    return mse(jax.shard_map(net, mesh=mesh, in_specs=(specs, P("d"), P("d")), out_specs=P("d"))(parameters, x, y), y)


ARGUMENTS = (parameters, x, y)
build_step = gradient_builder(loss)
