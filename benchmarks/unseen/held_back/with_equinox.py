"""A step written with Equinox, whose layers have scope names of their own, such as `eqx.nn.Linear`."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import optax

from recompute.benchmarks.unseen.held_back.layers import log_loss
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, integers, shape


class EncoderBlock(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    first: eqx.nn.LayerNorm
    second: eqx.nn.LayerNorm
    mlp: eqx.nn.MLP

    def __init__(self, key: jax.Array) -> None:
        entry, two = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(4, 48, key=entry)
        self.first, self.second = eqx.nn.LayerNorm(48), eqx.nn.LayerNorm(48)
        self.mlp = eqx.nn.MLP(48, 48, 160, 1, activation=jax.nn.gelu, key=two)

    def __call__(self, x: jax.Array) -> jax.Array:
        y = jax.vmap(self.first)(x)
        x = x + self.attention(y, y, y)
        return x + jax.vmap(self.mlp)(jax.vmap(self.second)(x))


class EquinoxEncoder(eqx.Module):
    lift: eqx.nn.Linear
    blocks: list[EncoderBlock]
    head: eqx.nn.Linear

    def __init__(self, key: jax.Array) -> None:
        keys = jax.random.split(key, 7)
        self.lift = eqx.nn.Linear(12, 48, key=keys[0])
        self.blocks = [EncoderBlock(k) for k in keys[1:6]]
        self.head = eqx.nn.Linear(48, 32, key=keys[6])

    def __call__(self, x: jax.Array, run: Blocks) -> jax.Array:
        x = jax.vmap(self.lift)(x)
        for i, block in enumerate(self.blocks):
            with run.scope(f"blocks.{i}"):
                x = eqx.filter_checkpoint(block)(x) if run.checkpoint else block(x)
        return self.head(x.mean(axis=0))


def eqx_encoder(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains an encoder with Equinox's attention, checkpointed by `filter_checkpoint`."""
    run, optimizer = Blocks(checkpoint, scopes), optax.adam(1e-3)
    module = eqx.filter_eval_shape(EquinoxEncoder, jax.random.key(0))
    params, static = eqx.partition(module, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))

    def loss(params: Any, xs: jax.Array, labels: jax.Array) -> jax.Array:
        model = eqx.combine(params, static)
        return log_loss(jax.vmap(lambda x: model(x, run))(xs), labels)

    def step(params: Any, state: Any, xs: jax.Array, labels: jax.Array) -> Any:
        value, grads = eqx.filter_value_and_grad(loss)(params, xs, labels)
        updates, state = optimizer.update(grads, state)
        return value, eqx.apply_updates(params, updates), state

    state = jax.eval_shape(optimizer.init, params)
    return UnseenStep(step, (params, state, shape(8, 80, 12), integers(8)), (0, 1))


STEPS = {"eqx_encoder": eqx_encoder}
