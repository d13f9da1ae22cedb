"""An embedding and a cross entropy with a vocabulary sharded across devices, and a scan over layers."""

# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.unseen.on_devices.mesh_parts import checkpoint_if, device_mesh, gradient_builder, normal

mesh = device_mesh((2, 4), ("d", "m"))
LAYERS, WIDTH, VOCABULARY, BATCH, LENGTH = 4, 32, 256, 8, 64
parameters = dict(
    embedding=normal(1, VOCABULARY, WIDTH),
    layers=dict(
        expand=normal(2, LAYERS, WIDTH, 4 * WIDTH),
        project=normal(3, LAYERS, 4 * WIDTH, WIDTH),
        scale=jnp.ones((LAYERS, WIDTH)),
    ),
)
x = jax.random.randint(jax.random.key(5), (BATCH, LENGTH + 1), 0, VOCABULARY)
specs = dict(embedding=P("m"), layers=dict(expand=P(None, None, "m"), project=P(None, "m"), scale=P()))


@jax.jit
def norm(x, g):
    return jax.nn.standardize(x, axis=-1) * g


def block(x, weights):
    return x + lax.psum(jax.jit(jax.nn.swish)(norm(x, weights["scale"]) @ weights["expand"]) @ weights["project"], "m")


def head(x, embedding, labels):
    rows = embedding.shape[0]
    offset = lax.axis_index("m") * rows
    logits = x @ embedding.T
    maximum = lax.pmax(lax.stop_gradient(logits.max(-1)), "m")
    log_sum = jnp.log(lax.psum(jnp.exp(logits - maximum[..., None]).sum(-1), "m")) + maximum
    local = labels - offset
    is_local = (local >= 0) & (local < rows)
    picked = lax.psum(
        jnp.where(is_local, jnp.take_along_axis(logits, jnp.where(is_local, local, 0)[..., None], -1)[..., 0], 0.0), "m"
    )
    return log_sum - picked


def loss(parameters, tokens, remat):
    run_block = checkpoint_if(remat)(block)
    run_head = checkpoint_if(remat)(head)

    def net(parameters, tokens):
        embedding = parameters["embedding"]
        rows = embedding.shape[0]
        offset = lax.axis_index("m") * rows
        local = tokens[:, :-1] - offset
        is_local = (local >= 0) & (local < rows)
        x = lax.psum(jnp.where(is_local[..., None], embedding[jnp.where(is_local, local, 0)], 0.0), "m")
        x, _ = lax.scan(lambda x, weights: (run_block(x, weights), None), x, parameters["layers"])
        return run_head(x, embedding, tokens[:, 1:])

    return jax.shard_map(net, mesh=mesh, in_specs=(specs, P("d")), out_specs=P("d"))(parameters, tokens).mean()


ARGUMENTS = (parameters, x)
build_step = gradient_builder(loss)
