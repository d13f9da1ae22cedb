"""A step written with Flax NNX. The module is split into its graph and its state, and the state is an argument."""

from __future__ import annotations

from typing import Any

import jax
from flax import nnx

from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, sgd, shape


class Layer(nnx.Module):
    def __init__(self, width: int, rngs: nnx.Rngs) -> None:
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.wide = nnx.Linear(width, 4 * width, rngs=rngs)
        self.narrow = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return x + self.narrow(nnx.gelu(self.wide(self.norm(x))))


class Network(nnx.Module):
    def __init__(self, depth: int, width: int, rngs: nnx.Rngs) -> None:
        self.stem = nnx.Linear(30, width, rngs=rngs)
        self.layers = nnx.List([Layer(width, rngs) for _ in range(depth)])
        self.head = nnx.Linear(width, 3, rngs=rngs)

    def __call__(self, x: jax.Array, run: Blocks) -> jax.Array:
        x = self.stem(x)
        for i, layer in enumerate(self.layers):
            graph, state = nnx.split(layer)
            x = run(f"layers/{i}", lambda state, x, graph=graph: nnx.merge(graph, state)(x), state, x)
        return self.head(x)


def nnx_residual(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains six residual layers, each checkpointed as a function of its state."""
    run = Blocks(checkpoint, scopes)
    graph, state = nnx.split(nnx.eval_shape(lambda: Network(6, 64, nnx.Rngs(0))))

    def loss(state: Any, x: jax.Array, target: jax.Array) -> jax.Array:
        return ((nnx.merge(graph, state)(x, run) - target) ** 2).mean()

    def step(state: Any, x: jax.Array, target: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(state, x, target)
        return value, sgd(state, grads)

    return UnseenStep(step, (state, shape(1024, 30), shape(1024, 3)), donate=(0,))


STEPS = {"nnx_residual": nnx_residual}
