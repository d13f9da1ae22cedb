"""`Cell` around modules of flax and equinox, within a model and at its call."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import recompute
from recompute.test.unit.frontends.jax.steps import batch, far_apart, groups_of, jax, jnp

pytestmark = pytest.mark.slow

ms: Any = recompute.jax.mindspore
LAYERS, WIDTH, HIDDEN = 4, 16, 64


def segments_of(step: Callable[..., Any], *arguments: Any) -> set[str]:
    """Return the recomputed segments of a step, after comparing its results with `jax.jit`."""
    lowered = recompute.jax.jit(step, measure=False).lower(*arguments)
    assert far_apart(lowered.compile()(*arguments), jax.jit(step)(*arguments)) == []
    return {group.segment for group in groups_of(lowered)}


def expected(name: str) -> set[str]:
    """Return the expected segments; the last entry is needed at once and not recomputed."""
    return {name, *(f"{name}#{index}" for index in range(1, LAYERS - 1))}


def recomputed(block: Any) -> Any:
    cell = ms.Cell(block)
    cell.recompute()
    return cell


def test_cell_wraps_part_of_an_equinox_model():
    eqx: Any = pytest.importorskip("equinox")

    class Block(eqx.Module):
        up: Any
        down: Any

        def __init__(self, key: Any):
            first, other = jax.random.split(key)
            self.up, self.down = eqx.nn.Linear(WIDTH, HIDDEN, key=first), eqx.nn.Linear(HIDDEN, WIDTH, key=other)

        def __call__(self, x: Any) -> Any:
            return x + jax.vmap(self.down)(jnp.tanh(jnp.sin(jax.vmap(self.up)(x)) * 2))

    class Net(eqx.Module):
        blocks: list[Any]

        def __call__(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return jnp.mean(x**2)

    def step(net: Any, x: Any) -> Any:
        return jax.value_and_grad(lambda net: net(x))(net)

    net = Net([recomputed(Block(jax.random.key(index))) for index in range(LAYERS)])
    weights, static = eqx.partition(net, eqx.is_array)
    run = lambda weights, x: step(eqx.combine(weights, static), x)  # noqa: E731
    assert segments_of(run, weights, batch()) >= expected("Block")
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(weights)]
    assert ".blocks[0].block.up.weight" in paths
    assert repr(net.blocks[0]).endswith(", recomputed)")


def test_cell_wraps_a_flax_linen_module():
    nn: Any = pytest.importorskip("flax.linen")

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: Any, *, scale: float) -> Any:
            return x + nn.Dense(WIDTH)(jnp.tanh(jnp.sin(nn.Dense(HIDDEN)(x)) * scale))

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            for _ in range(LAYERS):
                x = recomputed(Block())(x, scale=2.0)
            return jnp.mean(x**2)

    net = Net()
    weights = net.init(jax.random.key(0), batch())
    step = lambda weights, x: jax.value_and_grad(net.apply)(weights, x)  # noqa: E731
    assert segments_of(step, weights, batch()) >= {f"Block_{index}" for index in range(LAYERS - 1)}


def test_cell_wraps_part_of_an_nnx_model():
    nnx: Any = pytest.importorskip("flax.nnx")

    class Block(nnx.Module):
        def __init__(self, rngs: Any):
            self.up, self.down = nnx.Linear(WIDTH, HIDDEN, rngs=rngs), nnx.Linear(HIDDEN, WIDTH, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return x + self.down(jnp.tanh(jnp.sin(self.up(x)) * 2))

    class Net(nnx.Module):
        def __init__(self, rngs: Any):
            self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])

        def __call__(self, x: Any) -> Any:
            for block in self.blocks:
                x = recomputed(block)(x)
            return jnp.mean(x**2)

    graph, state = nnx.split(Net(nnx.Rngs(0)))
    step = lambda state, x: jax.value_and_grad(lambda state: nnx.merge(graph, state)(x))(state)  # noqa: E731
    assert segments_of(step, state, batch()) >= expected("Block")


def test_function_in_a_cell_is_not_a_leaf():
    cell = recomputed(jnp.tanh)
    leaves, structure = jax.tree.flatten({"cell": cell, "x": 1.0})
    assert leaves == [1.0]
    again = jax.tree.unflatten(structure, leaves)["cell"]
    assert again.block is jnp.tanh and again.switches == cell.switches
    assert structure != jax.tree.structure({"cell": ms.Cell(jnp.tanh), "x": 1.0})
