"""Dispatch of repeated calls by JAX itself; Python is called only for calls unlike all earlier ones."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingParameterType=false
from __future__ import annotations

import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import recompute
from recompute.frontends.jax.internals import private

pytestmark = pytest.mark.filterwarnings("ignore::recompute.jax.NothingSaved")


def loss(ws, x, scale: Any = 1.0):
    for w in ws:
        x = jnp.tanh(jnp.sin(x @ w))
    return jnp.sum(x) * scale


def step(ws, x, scale: Any = 1.0):
    value, gradient = jax.value_and_grad(loss)(ws, x, scale)
    return value, [w - 0.1 * g for w, g in zip(ws, gradient, strict=True)]


def weights() -> list[jax.Array]:
    draw = np.random.default_rng(0)
    return [jnp.asarray(draw.normal(0, 0.3, (8, 8)), jnp.float32) for _ in range(4)]


X = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)


@pytest.fixture
def python_calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the calls that reach Python."""
    items = list[Any]()
    original = private.call_compiled

    def counted(compiled, args, kwargs):
        items.append(args)
        return original(compiled, args, kwargs)

    monkeypatch.setattr(private, "call_compiled", counted)
    return items


def same(actual, expected) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def fast_jit(function, **keywords):
    return recompute.jax.jit(function, attempts=1, proof=False, measure=False, **keywords)


def test_repeated_calls_bypass_python(python_calls) -> None:
    ours, theirs, ws, x = fast_jit(step), jax.jit(step), weights(), jnp.asarray(X)
    for _ in range(3):
        (value, ws), (expected, other) = ours(ws, x), theirs(ws, x)
        same(value, expected)
        assert jax.tree.structure(ws) == jax.tree.structure(other)
    assert len(python_calls) == 1


UNLIKE: dict[str, Any] = {
    "another shape": lambda ws: (ws, jnp.ones((2, 8))),
    "another structure": lambda ws: (tuple(ws), jnp.asarray(X)),
    "an array of numpy's": lambda ws: (ws, X.astype(np.int32)),
    "a weak type": lambda ws: (ws, jnp.asarray(X), 2.0),
    "a strong type": lambda ws: (ws, jnp.asarray(X), jnp.float32(2)),
    "on a device that was chosen": lambda ws: jax.device_put((ws, jnp.asarray(X)), jax.devices()[0]),
}


@pytest.mark.parametrize("kind", UNLIKE)
def test_unlike_call_reaches_python_once(kind: str, python_calls) -> None:
    ours, ws = fast_jit(step), weights()
    ours(ws, jnp.asarray(X))
    given = UNLIKE[kind](ws)
    for _ in range(2):
        result, expected = ours(*given), jax.jit(step)(*given)
        assert jax.tree.map(jax.typeof, result) == jax.tree.map(jax.typeof, expected)
        assert [each.committed for each in jax.tree.leaves(result)] == [
            each.committed for each in jax.tree.leaves(expected)
        ]
    assert len(python_calls) == 2


def test_static_values_reach_python_once_each(python_calls) -> None:
    ours = fast_jit(step, static_argnums=2)
    for scale in (1.0, 2.0, 1.0, 2.0, 1):
        same(ours(weights(), X, scale)[0], step(weights(), X, scale)[0])
    assert len(python_calls) == 3


def test_donated_arguments_are_deleted(python_calls) -> None:
    ours = fast_jit(step, donate_argnums=0)
    for _ in range(3):
        ws = weights()
        ours(ws, X)
        assert all(w.is_deleted() for w in ws)
    assert len(python_calls) == 1


def test_changed_jax_setting_reaches_python_once(python_calls) -> None:
    ours, ws = fast_jit(step), weights()
    ours(ws, X)
    with jax.default_matmul_precision("highest"):
        ours(ws, X)
        ours(ws, X)
    ours(ws, X)
    assert len(python_calls) == 2
    with jax.disable_jit():
        ours(ws, X)
    assert len(python_calls) == 2


def test_effects_run_each_time() -> None:
    seen = list[float]()

    def step_with_callback(ws, x):
        value, updated = step(ws, x)
        io_callback(lambda value: seen.append(float(value)), None, value, ordered=True)
        return updated

    ours, ws = fast_jit(step_with_callback), weights()
    for _ in range(3):
        ws = ours(ws, X)
    jax.effects_barrier()
    assert len(seen) == 3 and len(set(seen)) == 3


def test_step_joins_enclosing_trace() -> None:
    ours, ws = fast_jit(step), weights()
    ours(ws, X)
    same(jax.jit(ours)(ws, X)[0], ours(ws, X)[0])
    assert jax.vmap(ours, (None, 0))(ws, jnp.stack([X, 2 * X]))[0].shape == (2,)


def test_calls_work_without_jax_dispatch(monkeypatch: pytest.MonkeyPatch, python_calls) -> None:
    monkeypatch.setattr(
        private, "DISPATCH_ATTRIBUTES", (("jax._src.pjit", "no_such_thing"), *private.DISPATCH_ATTRIBUTES[1:])
    )
    ours, ws = fast_jit(step), weights()
    for _ in range(2):
        same(ours(ws, X)[0], step(ws, X)[0])
    assert len(python_calls) == 2


def test_cleared_cache_is_refilled(python_calls) -> None:
    ours, ws = fast_jit(step), weights()
    ours(ws, X)
    ours.clear_cache()
    ours(ws, X)
    assert len(python_calls) == 2


def test_dropped_function_is_garbage_collected() -> None:
    ours = fast_jit(step)
    ours(weights(), X)
    seen = weakref.ref(ours)
    del ours
    gc.collect()
    assert seen() is None
