"""Calls of `recompute.jax.paddle.recompute`: nested, repeated, in conditions, with moved arguments, and errors."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import recompute
from recompute.test.unit.frontends.jax.paddle.paddle_cases import (
    batch,
    check,
    jax,
    jnp,
    loss_of,
    paddle,
    sines,
    wave,
    weights,
)
from recompute.test.unit.frontends.jax.steps import far_apart, temporaries

pytestmark = pytest.mark.slow

LAYERS = 3


def test_nested_calls():
    """Calls may be nested; Paddle's hooks allow "only one pair of hooks ... at a time"."""

    def loss(call: Any) -> Any:
        def pair(first: Any, second: Any, x: Any) -> Any:
            return call(wave, second, call(wave, first, x))

        def weighted_loss(parameters: Any, x: Any) -> Any:
            for index in range(0, len(parameters), 2):
                x = call(pair, parameters[index], parameters[index + 1], x)
            return jnp.mean(x**2)

        return weighted_loss

    lowered = check(loss, weights(4), batch())
    assert sines(lowered) == 8


def test_two_calls_of_one_function_are_two_segments():
    """Two calls make two segments; Paddle's PIR pass makes one, including everything in between."""

    def loss(call: Any) -> Any:
        def weighted_loss(w: Any, x: Any) -> Any:
            x = call(wave, w, x)
            x = jnp.sin(jnp.sin(x))  # between them, and kept
            return jnp.mean(call(wave, w, x) ** 2)

        return weighted_loss

    lowered = check(loss, weights(1)[0], batch())
    assert sines(lowered) == 4 + 2
    assert {group.segment for step in lowered.rewritten.plans for group in step.plan.groups} == {"wave", "wave#1"}


def test_function_with_a_condition_is_recomputed():
    """A condition is recomputed; Paddle raises "Recompute don't support ops with sub_block"."""

    def block(w: Any, x: Any) -> Any:
        hidden = jnp.tanh(jnp.sin(x @ w["up"]))
        return x + jax.lax.cond(hidden.sum() > 0, jnp.sin, jnp.cos, hidden) @ w["down"]

    check(lambda call: loss_of(call, block), weights(LAYERS), batch())


def test_calls_in_branches_are_recomputed():
    def loss(call: Any) -> Any:
        def weighted_loss(parameters: Any, x: Any) -> Any:
            for w in parameters:
                branches = [lambda x, w=w, sign=sign: call(wave, w, sign * x) for sign in (1.0, -1.0)]
                x = jax.lax.cond(x.sum() > 0, *branches, x)
            return jnp.mean(x**2)

        return weighted_loss

    check(loss, weights(LAYERS), batch())


def test_each_call_of_jitted_function_is_a_segment():
    """Each call is a segment, although the function is traced once."""

    def loss(call: Any) -> Any:
        inner = jax.jit(lambda w, x: call(wave, w, x))

        def weighted_loss(parameters: Any, x: Any) -> Any:
            for w in parameters:
                x = inner(w, x)
            return jnp.mean(x**2)

        return weighted_loss

    lowered = check(loss, weights(LAYERS), batch())
    assert len({group.segment for step in lowered.rewritten.plans for group in step.plan.groups}) == LAYERS


def test_calls_work_under_vmap_of_grad():
    each = jax.vmap(jax.value_and_grad(loss_of(paddle.recompute)), in_axes=(None, 0))
    lowered = recompute.jax.jit(each, measure=False).lower(weights(LAYERS), batch(1024).reshape(4, 256, 16))
    assert lowered.why is None and sines(lowered) == 2 * LAYERS


def test_calls_around_and_inside_loops_save_memory():
    """The stacks are smaller either way, although recomputing a whole loop from outside would save nothing."""

    def loss(w: Any, x: Any, around: bool) -> Any:
        def body(x: Any, _: Any) -> Any:
            return (wave(w, x) if around else paddle.recompute(wave, w, x)), None

        def loop(x: Any) -> Any:
            return jax.lax.scan(body, x, None, length=4)[0]

        for _ in range(2):
            x = paddle.recompute(loop, x) if around else loop(x)
        return jnp.mean(x**2)

    for around in (True, False):
        step, arguments = jax.value_and_grad(partial(loss, around=around)), (weights(1)[0], batch())
        lowered = recompute.jax.jit(step, measure=False).lower_quietly(*arguments)
        assert lowered.why is None and lowered.rewritten is not None
        assert lowered.rewritten.proof is not None and lowered.rewritten.proof.tier == 2
        assert sum("of new stacks: the loop" in str(remark) for remark in lowered.remarks) == 2
        assert not any("stands inside" in str(remark) for remark in lowered.remarks)
        less, plain = lowered.compile(), lowered.compile_plain()
        assert temporaries(less) < 0.3 * temporaries(plain)
        assert not far_apart(less(*arguments), plain(*arguments))


def test_offload_indices_apply_to_arguments():
    step = jax.value_and_grad(loss_of(paddle.recompute, offload_indices=[1]))
    lowered = recompute.jax.jit(step, measure=False).lower(weights(LAYERS), batch())
    assert lowered.why is None and sines(lowered) == 2 * LAYERS
    assert any("offload=marked would also move it to the host" in str(remark) for remark in lowered.remarks)
    without = recompute.jax.jit(jax.value_and_grad(loss_of(paddle.recompute)), measure=False)
    assert not any("offload" in str(remark) for remark in without.lower(weights(LAYERS), batch()).remarks)


def test_offload_ignores_non_arrays():
    given = {"x": jnp.ones(3), "kind": "sum", "times": 2}
    result = paddle.recompute(
        lambda given, y: (given["kind"], given["times"], given["x"] + y), given, np.ones(3), offload_indices=[0, 1, 0]
    )
    assert result[:2] == ("sum", 2) and result[2].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("switches", "error", "words"),
    [
        ({"preserve_rng_state": 1}, TypeError, "preserve_rng_state must be True or False, not 1"),
        ({"preserve_rng_state": None}, TypeError, "preserve_rng_state must be True or False, not None"),
        ({"use_reentrant": "no"}, TypeError, "use_reentrant must be True or False, not 'no'"),
        ({"offload_indices": 0}, TypeError, "offload_indices must be a list of int, not int"),
        ({"offload_indices": "0"}, TypeError, "offload_indices must be a list of int, not str"),
        ({"offload_indices": [True]}, TypeError, "offload_indices must be a list of int, but contains True"),
        ({"offload_indices": [0.0]}, TypeError, "offload_indices must be a list of int, but contains 0.0"),
        ({"offload_indices": [2]}, ValueError, "offload_indices contains 2, but there are 2 positional arguments"),
        ({"offload_indices": [-1]}, ValueError, "offload_indices contains -1, but there are 2 positional arguments"),
        ({"offload_indices": [1]}, TypeError, "offload_indices contains 1, but that argument, str, has no arrays"),
        ({"preserve_rng": True}, TypeError, "unexpected keyword argument 'preserve_rng'"),
    ],
)
def test_invalid_switches_are_rejected(switches: dict[str, Any], error: type[Exception], words: str):
    def function(x: Any, name: str) -> Any:
        return x

    with pytest.raises(error, match=words):
        paddle.recompute(function, jnp.ones(3), "name", **switches)


@pytest.mark.parametrize("function", [None, 3, jnp])
def test_non_function_is_rejected(function: Any):
    with pytest.raises(
        TypeError,
        match=f"recompute: expected a function, or a module of flax or equinox, not {type(function).__name__}",
    ):
        paddle.recompute(function, jnp.ones(3))
