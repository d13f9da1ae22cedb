"""A GAN step with gradients of the generator and of the discriminator, each network in a `shard_map`."""

# pyright: basic

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import (
    checkpoint_if,
    device_mesh,
    mlp_parameters,
    normal,
    run_blocks,
)

mesh = device_mesh((8,), ("d",))
LAYERS, WIDTH, BATCH = 3, 48, 512


def block(x, weights):
    return x + jnp.tanh(x @ weights["expand"]) @ weights["project"]


def build_step(remat):
    run_block = checkpoint_if(remat)(block)

    def net(name):
        return jax.shard_map(
            partial(run_blocks, run_block, scope=name), mesh=mesh, in_specs=(P(), P("d")), out_specs=P("d")
        )

    generator, discriminator = net("gen"), net("dis")

    def generator_loss(generator_parameters, discriminator_parameters, noise):
        generated = generator(generator_parameters, noise)
        return -jnp.mean(jax.nn.log_sigmoid(discriminator(discriminator_parameters, generated).sum(-1)))

    def discriminator_loss(discriminator_parameters, generator_parameters, noise, x):
        return -jnp.mean(
            jax.nn.log_sigmoid(discriminator(discriminator_parameters, x).sum(-1))
            + jax.nn.log_sigmoid(
                -discriminator(discriminator_parameters, lax.stop_gradient(generator(generator_parameters, noise))).sum(
                    -1
                )
            )
        )

    def step(generator_parameters, discriminator_parameters, noise, x):
        generator_value, generator_gradients = jax.value_and_grad(generator_loss)(
            generator_parameters, discriminator_parameters, noise
        )
        discriminator_value, discriminator_gradients = jax.value_and_grad(discriminator_loss)(
            discriminator_parameters, generator_parameters, noise, x
        )

        def descend(parameters, gradients):
            return jax.tree.map(lambda weights, gradients: weights - 0.1 * gradients, parameters, gradients)

        return (
            descend(generator_parameters, generator_gradients),
            descend(discriminator_parameters, discriminator_gradients),
            generator_value,
            discriminator_value,
        )

    return step


ARGUMENTS = (
    mlp_parameters(LAYERS, WIDTH),
    mlp_parameters(LAYERS, WIDTH, seed=100),
    normal(98, BATCH, WIDTH, scale=1.0),
    normal(99, BATCH, WIDTH, scale=1.0),
)
