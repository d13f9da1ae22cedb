"""Small models of flax nnx with their training steps. Import this only if flax is installed."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

nnx: Any = pytest.importorskip("flax.nnx", reason="models of flax nnx")
optax: Any = pytest.importorskip("optax", reason="the optimizers of the models")
jax: Any = pytest.importorskip("jax", reason="the frontend for JAX")
jnp: Any = jax.numpy

Module: Any = nnx.Module


@dataclass(frozen=True)
class Training:
    """Model and one batch. `build(remat)` returns the model, with its blocks under `nnx.remat` if `remat`."""

    build: Callable[[bool], Any]
    inputs: Callable[[], Any]

    def trained(self, jit: Callable[..., Any], steps: int = 3) -> tuple[list[float], int]:
        """Train a new model, and return the losses of some steps and the bytes of temporaries of one step."""
        step, model = jit(train_step), self.build(False)
        optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
        losses = [float(step(model, optimizer, self.inputs())) for _ in range(steps)]
        return losses, temporaries(step.lower(model, optimizer, self.inputs()))

    def temporaries_of_remat(self) -> int:
        model = self.build(True)
        optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
        # Without this option XLA:CPU drops the barriers of `nnx.remat`, and the saving with them.
        options = {"xla_disable_hlo_passes": "cse_barrier_expander"}
        return temporaries(nnx.jit(train_step).lower(model, optimizer, self.inputs()), options)


def temporaries(lowered: Any, options: Any = None) -> int:
    return lowered.compile(options).memory_analysis().temp_size_in_bytes


def train_step(model: Any, optimizer: Any, x: Any) -> Any:
    def loss_of(model: Any) -> Any:
        return jnp.mean(model(x) ** 2)

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, gradients)
    return loss


def applied(block: Any, x: Any, remat: bool) -> Any:
    return nnx.remat(type(block).__call__)(block, x) if remat else block(x)


class Dense(Module):
    def __init__(self, width: int, rngs: Any):
        self.up = nnx.Linear(width, 4 * width, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return x + self.dropout(self.down(nnx.gelu(self.up(x))))


class Convolution(Module):
    def __init__(self, features: int, rngs: Any):
        self.convolution = nnx.Conv(features, features, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(features, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return x + nnx.relu(self.norm(self.convolution(x)))


class Attention(Module):
    def __init__(self, width: int, rngs: Any):
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(4, width, decode=False, rngs=rngs)
        self.mlp = Dense(width, rngs)

    def __call__(self, x: Any) -> Any:
        return self.mlp(x + self.attention(self.norm(x)))


class Chain(Module):
    """Consecutive blocks of one kind."""

    def __init__(self, block: Callable[[Any], Any], layers: int, remat: bool):
        rngs = nnx.Rngs(0)
        self.blocks = nnx.List([block(rngs) for _ in range(layers)])
        self.remat = remat

    def __call__(self, x: Any) -> Any:
        for block in self.blocks:
            x = applied(block, x, self.remat)
        return x


class Scanned(Module):
    """Blocks with stacked weights, run by `nnx.scan`."""

    def __init__(self, width: int, layers: int):
        @nnx.split_rngs(splits=layers)
        @nnx.vmap(in_axes=0, out_axes=0)
        def blocks(rngs: Any) -> Any:
            return Dense(width, rngs)

        self.blocks = blocks(nnx.Rngs(0))

    def __call__(self, x: Any) -> Any:
        @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        def run(block: Any, x: Any) -> Any:
            return block(x)

        return run(self.blocks, x)


def chain_of(block: Callable[..., Any], layers: int, width: int, *shape: int) -> Training:
    def inputs() -> Any:
        return jax.random.normal(jax.random.key(1), shape)

    return Training(lambda remat: Chain(lambda rngs: block(width, rngs), layers, remat), inputs)


MODELS = {
    "mlp with dropout": chain_of(Dense, 3, 16, 128, 16),
    "cnn with BatchNorm": chain_of(Convolution, 3, 8, 8, 8, 8, 8),
    "transformer": chain_of(Attention, 4, 32, 4, 64, 32),
}
SCANNED = Training(lambda remat: Scanned(16, 4), lambda: jax.random.normal(jax.random.key(1), (128, 16)))
