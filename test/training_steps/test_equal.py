"""The results of `recompute.jax.jit` and `jax.jit` are equal, and each case recomputes."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import recompute
from recompute.test.unit.frontends.jax.steps import (
    Case,
    batch,
    block,
    dense,
    descent,
    far_apart,
    forward,
    jax,
    jnp,
    mlp,
    tree,
    weights,
)

pytestmark = pytest.mark.slow


def dropout(key: Callable[[], Any]) -> Case:
    def step(parameters: Any, x: Any, key: Any) -> Any:
        def layer(w: Any, x: Any, index: int) -> Any:
            hidden = jnp.tanh(jnp.sin(x @ w["up"]))
            mask = jax.random.bernoulli(jax.random.fold_in(key, index), 0.9, hidden.shape)
            return x + jnp.where(mask, hidden / 0.9, 0.0) @ w["down"]

        return *descent(forward(layer))(parameters, x), jax.random.split(key)[0]

    return Case(step, lambda: (weights(), batch(), key()))


def has_aux() -> Case:
    def loss(parameters: Any, x: Any) -> Any:
        value = forward()(parameters, x)
        return value, {"rows": x.shape[0], "log": (jnp.log(value), None), "bits": jnp.arange(3) > 1}

    return Case(lambda p, x: jax.value_and_grad(loss, has_aux=True)(p, x), lambda: (weights(), batch()))


def keywords() -> Case:
    def step(parameters: Any, *, batch: Any, rate: Any) -> Any:
        value, gradient = jax.value_and_grad(forward())(parameters, batch["x"])
        return {"loss": value, "next": tree.map(lambda p, g: p - rate * g, parameters, gradient)}

    return Case(step, lambda: (weights(),), {"batch": {"x": batch()}, "rate": 0.01})


def static(scale_by_name: bool) -> Case:
    def step(parameters: Any, times: int, x: Any, mode: str = "sine") -> Any:
        def layer(w: Any, x: Any, index: int) -> Any:
            for _ in range(times):
                x = x + (jnp.sin if mode == "sine" else jnp.tanh)(jnp.tanh(x @ w["up"])) @ w["down"]
            return x

        return descent(forward(layer))(parameters, x)

    if scale_by_name:
        names = {"static_argnames": ("times", "mode")}
        return Case(step, lambda: (weights(),), {"times": 2, "x": batch(), "mode": "tanh"}, names)
    return Case(step, lambda: (weights(), 2, batch(), "tanh"), options={"static_argnums": (1, -1)})


def checkpointed() -> Case:
    return mlp(
        lambda w, x, index: jax.checkpoint(dense, static_argnums=2)(w, x, index) if index % 2 else dense(w, x, 0)
    )


def conditional() -> Case:
    def layer(w: Any, x: Any, index: int) -> Any:
        hidden = jnp.tanh(jnp.sin(x @ w["up"]))
        hidden = jax.lax.cond(hidden.sum() > 0, jnp.sin, jnp.cos, hidden)
        return x + hidden @ w["down"]

    return mlp(layer)


def custom_vjp() -> Case:
    @jax.custom_vjp
    def squash(x: Any) -> Any:
        return jnp.tanh(x)

    squash.defvjp(lambda x: (jnp.tanh(x), jnp.tanh(x)), lambda y, g: (g * (1 - y * y) * 0.5,))
    return mlp(lambda w, x, index: x + squash(jnp.sin(x @ w["up"])) @ w["down"])


def vmapped() -> Case:
    """Per-example gradients."""

    def step(parameters: Any, x: Any) -> Any:
        return jax.vmap(jax.grad(forward()), in_axes=(None, 0))(parameters, x)

    return Case(step, lambda: (weights(3, 4, 8), batch(256, 4).reshape(32, 8, 4)))


def adamw() -> Case:
    optax: Any = pytest.importorskip("optax", reason="the optimizer of the step")
    optimizer = optax.adamw(1e-3)

    def step(state: Any, x: Any) -> Any:
        parameters, moments = state
        value, gradient = jax.value_and_grad(forward())(parameters, x)
        updates, moments = optimizer.update(gradient, moments, parameters)
        return (optax.apply_updates(parameters, updates), moments), value

    return Case(step, lambda: ((weights(), optimizer.init(weights())), batch()), options={"donate_argnums": 0})


def meshed() -> Case:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))

    def sharded_over(*names: str) -> Any:
        return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*names))

    options = {"in_shardings": (sharded_over(), sharded_over("data")), "out_shardings": sharded_over()}
    return Case(mlp().step, mlp().arguments, options=options)


def weak() -> Case:
    """Python number of weak type as argument and result."""

    def step(parameters: Any, x: Any, rate: Any) -> Any:
        value, gradient = jax.value_and_grad(forward())(parameters, x)
        return value, rate * 2, tree.map(lambda p, g: p - rate * g, parameters, gradient)

    return Case(step, lambda: (weights(dtype=jnp.bfloat16), batch(dtype=jnp.bfloat16), 0.5))


CASES: dict[str, Callable[[], Case]] = {
    "pytrees": mlp,
    "keywords": keywords,
    "static by number": lambda: static(False),
    "static by name": lambda: static(True),
    "donated": lambda: mlp(donate_argnums=0),
    "donated by name": lambda: mlp(donate_argnames=("parameters",)),
    "weak types": weak,
    "has_aux": has_aux,
    "bf16": lambda: Case(mlp().step, lambda: (weights(dtype=jnp.bfloat16), batch(dtype=jnp.bfloat16))),
    "dropout": lambda: dropout(lambda: jax.random.key(3)),
    "dropout, raw key": lambda: dropout(lambda: jax.random.PRNGKey(3)),
    "checkpoint inside": checkpointed,
    "cond": conditional,
    "custom_vjp": custom_vjp,
    "vmap of grad": vmapped,
    "adamw": adamw,
    "mesh": meshed,
}


@pytest.mark.parametrize("name", CASES)
def test_results_equal_those_of_jax_jit(name: str):
    case = CASES[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.NothingSaved)
        ours = recompute.jax.jit(case.step, measure=False, **case.options)
        given, others = case.arguments(), case.arguments()
        result = ours(*given, **case.keywords)
    expected = jax.jit(case.step, **case.options)(*others, **case.keywords)
    assert far_apart(result, expected) == []
    assert deleted(given) == deleted(others)
    again = ours(*case.arguments(), **case.keywords)
    assert far_apart(again, result) == []


def test_step_without_arguments_runs_plain():
    """The plain step runs if everything is computed from constants."""
    given, x = weights(), batch()
    with pytest.warns(recompute.jax.NothingSaved, match="the plain step runs: .* are not recomputed: "):
        step = recompute.jax.jit(lambda: descent(forward())(given, x))()
    assert far_apart(step, jax.jit(lambda: descent(forward())(given, x))()) == []


def deleted(arguments: Any) -> list[bool]:
    return [leaf.is_deleted() for leaf in tree.leaves(arguments) if isinstance(leaf, jax.Array)]


def test_donated_buffers_are_deleted():
    case = adamw()
    given = case.arguments()
    recompute.jax.jit(case.step, **case.options)(*given)
    assert all(deleted(given[0])) and not any(deleted(given[1:]))


@pytest.mark.slow
def test_consecutive_steps_have_equal_bits():
    """Three steps that pass on their state have equal bits, and are compiled once."""
    case = adamw()
    ours, theirs = (jit(case.step, **case.options) for jit in (recompute.jax.jit, jax.jit))
    state, other, x = case.arguments()[0], case.arguments()[0], batch()
    for _ in range(3):
        (state, loss), (other, expected) = ours(state, x), theirs(other, x)
        assert far_apart(loss, expected) == []


def test_method_is_jitted():
    class Model:
        rate = 0.5

        @recompute.jax.jit(static_argnums=0, segments="block*")
        def step(self, parameters: Any, x: Any) -> Any:
            return jax.value_and_grad(forward())(parameters, x * self.rate)

    results = Model().step(weights(), batch())
    expected = jax.jit(lambda p, x: jax.value_and_grad(forward())(p, x * 0.5))(weights(), batch())
    assert far_apart(results, expected) == []


def test_block_decorates_a_function():
    @block("layer")
    def layer(w: Any, x: Any, index: int) -> Any:
        return dense(w, x, index)

    def loss(parameters: Any, x: Any) -> Any:
        for w in parameters:
            x = layer(w, x, 0)
        return jnp.mean(x**2)

    lowered = recompute.jax.jit(descent(loss), segments="layer").lower(weights(), batch())
    assert lowered.rewritten is not None and lowered.rewritten.copies > 0
    assert "layer" in lowered.plain.as_text(debug_info=True)


@pytest.mark.parametrize("name", ["", "a/b", "jvp(a)"])
def test_invalid_block_names_are_rejected(name: str):
    with pytest.raises(ValueError, match="cannot name a segment"):
        block(name)


def test_block_name_must_be_a_string():
    with pytest.raises(TypeError, match="the name is a str, not int"):
        block(3)  # pyright: ignore[reportArgumentType]
