"""Small training steps of every kind for tests of `recompute.jax.jit`. Import this only if JAX is installed."""

# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import recompute
from recompute.planning.plan import CopyGroup

jax: Any = pytest.importorskip("jax", reason="the frontend for JAX")
jnp: Any = jax.numpy
block = recompute.jax.block
tree: Any = jax.tree

Layer = Callable[[Any, Any, int], Any]


@dataclass(frozen=True)
class Case:
    """Step with the options of `jax.jit`. Arguments are created again for each run, which consumes donated ones."""

    step: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    keywords: dict[str, Any] = field(default_factory=dict[str, Any])
    options: dict[str, Any] = field(default_factory=dict[str, Any])


def weights(layers: int = 3, width: int = 16, hidden: int = 64, dtype: Any = None) -> list[dict[str, Any]]:
    draw = np.random.default_rng(0)

    def matrix(*shape: int) -> Any:
        return jnp.asarray(draw.normal(0, 0.2, shape), dtype or jnp.float32)

    return [{"up": matrix(width, hidden), "down": matrix(hidden, width)} for _ in range(layers)]


def batch(rows: int = 256, width: int = 16, dtype: Any = None) -> Any:
    return jnp.asarray(np.random.default_rng(1).normal(0, 1, (rows, width)), dtype or jnp.float32)


def dense(w: Any, x: Any, index: int) -> Any:
    return x + jnp.tanh(jnp.sin(x @ w["up"]) * 2) @ w["down"]


def forward(layer: Layer = dense) -> Callable[[Any, Any], Any]:
    """Return the loss of an MLP whose layers are named blocks."""

    def loss(parameters: Any, x: Any) -> Any:
        for index, w in enumerate(parameters):
            with block(f"block{index}"):
                x = layer(w, x, index)
        return jnp.mean(x.astype(jnp.float32) ** 2)

    return loss


def descent(loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(parameters: Any, *rest: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(parameters, *rest)
        return value, tree.map(lambda p, g: p - 0.01 * g, parameters, gradient)

    return step


def mlp(layer: Layer = dense, **options: Any) -> Case:
    return Case(descent(forward(layer)), lambda: (weights(), batch()), options=options)


def far_apart(ours: Any, theirs: Any) -> list[str]:
    """Return the leaves that differ by more than 4 eps times their largest number, or in type.

    Fusions round differently, depending on the processor's vector units: 2.2 eps have been observed.
    """
    assert tree.structure(ours) == tree.structure(theirs)
    pairs = zip(tree.leaves_with_path(ours), tree.leaves(theirs), strict=True)
    return [f"{jax.tree_util.keystr(path)}: {a} {b}" for (path, a), b in pairs if not _close(a, b)]


def _close(a: Any, b: Any) -> bool:
    if jax.typeof(a) != jax.typeof(b):
        return False
    if not jnp.issubdtype(a.dtype, jnp.floating):
        return bool((a == b).all())
    first, other = (np.asarray(each, np.float64) for each in (a, b))
    return float(np.abs(first - other).max(initial=0)) <= 4 * float(jnp.finfo(a.dtype).eps) * np.abs(other).max(
        initial=0
    )


def groups_of(lowered: recompute.jax.Lowered) -> tuple[CopyGroup, ...]:
    """Return the copy groups of the only step."""
    assert lowered.rewritten is not None, lowered.why
    return lowered.rewritten.plans[0].plan.groups


def temporaries(compiled: Any) -> int:
    return compiled.memory_analysis().temp_size_in_bytes
