"""Steps written with Equinox, whose layers have scope names of their own, such as `eqx.nn.Linear`."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.open.open_layers import cross_entropy
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, sgd, shape


def arrays_of(make: Any) -> tuple[Any, Any]:
    """Return the shapes of a module's arrays, and the other parts of the module."""
    module = eqx.filter_eval_shape(make, jax.random.key(0))
    return eqx.partition(module, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))


class EquinoxConvNet(eqx.Module):
    stem: eqx.nn.Conv2d
    blocks: list[tuple[eqx.nn.Conv2d, eqx.nn.GroupNorm, eqx.nn.Conv2d]]
    head: eqx.nn.Linear

    def __init__(self, key: jax.Array) -> None:
        keys = jax.random.split(key, 4)
        self.stem = eqx.nn.Conv2d(3, 16, 3, padding=1, key=keys[0])
        self.blocks = [
            (
                eqx.nn.Conv2d(16, 32, 3, padding=1, key=keys[1]),
                eqx.nn.GroupNorm(4, 32),
                eqx.nn.Conv2d(32, 16, 1, key=keys[2]),
            )
            for _ in range(5)
        ]
        self.head = eqx.nn.Linear(16, 32, key=keys[3])

    def __call__(self, x: jax.Array, run: Blocks) -> jax.Array:
        def block(parts: Any, x: jax.Array) -> jax.Array:
            wide, norm, narrow = parts
            return x + narrow(jax.nn.relu(norm(wide(x))))

        x = self.stem(x)
        for i, parts in enumerate(self.blocks):
            x = run(f"blocks[{i}]", block, parts, x)
        return self.head(x.mean((1, 2)))


def eqx_convnet(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a convolutional network for single images, with `vmap` around the blocks."""
    run = Blocks(checkpoint, scopes)
    params, static = arrays_of(EquinoxConvNet)

    def loss(params: Any, image: jax.Array, labels: jax.Array) -> jax.Array:
        model = eqx.combine(params, static)
        return cross_entropy(jax.vmap(lambda x: model(x, run))(image), labels)

    def step(params: Any, image: jax.Array, labels: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, labels)
        return value, sgd(params, grads)

    return UnseenStep(step, (params, shape(8, 3, 48, 48), integers(8)))


def eqx_deep_mlp(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains five residual blocks, each with a layer norm and Equinox's `MLP`."""
    run = Blocks(checkpoint, scopes)

    def make(key: jax.Array) -> Any:
        mlp = [eqx.nn.MLP(40, 40, 120, 2, activation=jax.nn.silu, key=k) for k in jax.random.split(key, 5)]
        return [(eqx.nn.LayerNorm(40), m) for m in mlp]

    params, static = arrays_of(make)

    def loss(params: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        for i, (arrays, others) in enumerate(zip(params, static, strict=True)):

            def block(arrays: Any, x: jax.Array, others: Any = others) -> jax.Array:
                norm, mlp = eqx.combine(arrays, others)
                return x + jax.vmap(lambda row: mlp(norm(row)))(x)

            x = run(f"mlp_{i}", block, arrays, x)
        return jnp.mean((x - target) ** 2)

    def step(params: Any, state: Any, x: jax.Array, target: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, target)
        return value, *adam(params, grads, state)

    return UnseenStep(step, (params, adam_state(params), shape(2048, 40), shape(2048, 40)))


STEPS = {"eqx_convnet": eqx_convnet, "eqx_deep_mlp": eqx_deep_mlp}
