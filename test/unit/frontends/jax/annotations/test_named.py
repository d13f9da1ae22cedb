"""Modules of flax nnx and equinox as scopes of a `named` model, which changes nothing else."""

# pyright: basic

from __future__ import annotations

from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation.allocation import temporary_bytes
from recompute.test.unit.frontends.jax.steps import far_apart, jax, jnp

nnx: Any = pytest.importorskip("flax.nnx")
eqx: Any = pytest.importorskip("equinox")
LAYERS = 3


class Block(nnx.Module):
    def __init__(self, rngs: Any):
        self.up, self.down = nnx.Linear(16, 64, rngs=rngs), nnx.Linear(64, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return x + self.down(jnp.tanh(jnp.sin(self.up(self.norm(x)))))


class Net(nnx.Module):
    def __init__(self, rngs: Any):
        self.layers = nnx.List([Block(rngs) for _ in range(LAYERS)])
        self.head = nnx.data({"a/b": nnx.Linear(16, 4, rngs=rngs)})

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.head["a/b"](x)


class EqxBlock(eqx.Module):
    up: Any
    down: Any

    def __init__(self, key: Any):
        self.up, self.down = eqx.nn.Linear(16, 64, key=key), eqx.nn.Linear(64, 16, key=key)

    def __call__(self, x: Any) -> Any:
        return x + jax.vmap(self.down)(jnp.tanh(jnp.sin(jax.vmap(self.up)(x))))


class EqxNet(eqx.Module):
    layers: list[EqxBlock]
    shared: EqxBlock

    def __init__(self, key: Any):
        self.shared = EqxBlock(key)
        self.layers = [EqxBlock(word) for word in jax.random.split(key, LAYERS - 1)] + [self.shared]

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def of_nnx(wrap: Any) -> tuple[Any, Any]:
    graph, state = nnx.split(Net(nnx.Rngs(0)))

    def step(state: Any, x: Any) -> Any:
        def loss(model: Any) -> Any:
            return jnp.mean(wrap(model)(x) ** 2)

        model = nnx.merge(graph, state)
        value, gradient = nnx.value_and_grad(loss)(model)
        return value, gradient, nnx.state(model)  # with the statistics of BatchNorm

    return step, state


def of_equinox(wrap: Any) -> tuple[Any, Any]:
    arrays, rest = eqx.partition(EqxNet(jax.random.key(0)), eqx.is_array)

    def step(arrays: Any, x: Any) -> Any:
        def loss(model: Any) -> Any:
            return jnp.mean(wrap(model)(x) ** 2)

        return eqx.filter_value_and_grad(loss)(eqx.combine(arrays, rest))

    return step, arrays


@pytest.mark.parametrize("requests", [of_nnx, of_equinox])
def test_blocks_are_scopes_with_their_names(requests: Any):
    x = jax.random.normal(jax.random.key(1), (512, 16))
    (plain, state), (step, _) = requests(lambda model: model), requests(recompute.jax.named)
    lowered = recompute.jax.jit(step, segments="layers*", strict=True).lower(state, x)
    text = lowered.plain.as_text(debug_info=True)
    assert all(f"jvp(layers{index})" in text or f"/layers{index}/" in text for index in range(LAYERS - 1))
    for result, expected in zip(
        *map(jax.tree.leaves, (lowered.compile()(state, x), jax.jit(plain)(state, x))), strict=True
    ):
        assert float(jnp.abs(result - expected).max()) <= 8 * jnp.finfo(result.dtype).eps * float(
            jnp.abs(expected).max()
        )
    less, more = (temporary_bytes(item) for item in (lowered.compile(), lowered.compile_plain(keeps_barriers=True)))
    assert less is not None and more is not None and less < 0.75 * more
    assert lowered.rewritten is not None
    assert {group.segment for plan in lowered.rewritten.plans for group in plan.plan.groups} >= {"layers0", "layers1"}


def test_named_leaves_the_model_unchanged():
    model = Net(nnx.Rngs(0))
    copy = recompute.jax.named(model)
    assert type(model.layers[0]) is Block and type(copy.layers[0]) is not Block
    assert isinstance(copy.layers[0], Block) and type(copy.layers[0]).__name__ == "Block"
    assert copy.layers[0].up.kernel is model.layers[0].up.kernel
    assert copy.layers[1].norm.mean is model.layers[1].norm.mean
    copy(jnp.ones((4, 16)))
    assert float(model.layers[1].norm.mean[...].sum()) != 0


def test_shared_layers_stay_shared():
    model = EqxNet(jax.random.key(0))
    copy = recompute.jax.named(model)
    assert copy.layers[-1] is copy.shared
    assert far_apart(jax.tree.leaves(copy), jax.tree.leaves(model)) == []


def test_unusual_names_are_escaped_and_other_models_handled():
    text = jax.jit(lambda x: recompute.jax.named(Net(nnx.Rngs(0)))(x)).lower(jnp.ones((4, 16)))
    assert "head.a.b" in text.as_text(debug_info=True)
    linen: Any = pytest.importorskip("flax.linen")
    dense = linen.Dense(3)
    assert recompute.jax.named(dense) is dense
    with pytest.raises(TypeError, match="a module of flax nnx or equinox, not function"):
        recompute.jax.named(test_named_leaves_the_model_unchanged)
