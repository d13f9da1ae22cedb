"""`recompute.jax.paddle.recompute`: each call is one segment, whatever the types of its arguments and results."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation.allocation import temporary_bytes
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

LAYERS = 3


def test_only_wrapped_blocks_are_recomputed():
    def loss(call: Any) -> Any:
        def of(parameters: Any, x: Any) -> Any:
            for index, w in enumerate(parameters):
                x = call(wave, w, x) if index in (1, 2) else wave(w, x)
            return jnp.mean(x**2)

        return of

    lowered = check(loss, weights(5), batch())
    assert sines(lowered) == 5 + 2


def test_wrapped_blocks_need_less_memory():
    step, arguments = jax.value_and_grad(loss_of(paddle.recompute)), (weights(6), batch(2048))
    lowered = recompute.jax.jit(step, measure=False).lower(*arguments)
    ours, theirs = (temporary_bytes(item) for item in (lowered.compile(), lowered.compile_plain()))
    assert ours is not None and theirs is not None and ours < 0.5 * theirs


@pytest.mark.parametrize("preserve_rng_state", [True, False])
@pytest.mark.parametrize("use_reentrant", [True, False])
def test_switches_have_no_effect_without_randomness(preserve_rng_state: bool, use_reentrant: bool):
    switches: Any = {"preserve_rng_state": preserve_rng_state, "use_reentrant": use_reentrant}
    lowered = check(lambda call: loss_of(call, **switches), weights(LAYERS), batch())
    assert sines(lowered) == 2 * LAYERS


def test_call_options_are_encoded_in_scope():
    """The scope name encodes the options of the call: collectives always repeat, stateful operations only on
    request."""
    step = jax.jit(jax.grad(loss_of(paddle.recompute, preserve_rng_state=False)))
    text = step.lower(weights(1), batch()).as_text(debug_info=True)
    assert "+parallel_optimizer_comm_recompute-preserve_rng_state" in text
    text = jax.jit(jax.grad(loss_of(paddle.recompute))).lower(weights(1), batch()).as_text(debug_info=True)
    assert "+parallel_optimizer_comm_recompute" in text and "preserve_rng_state" not in text


def parts(w: Any, x: Any, kind: Any) -> Any:
    """Return the block with its input and output packed in pytrees of type `kind`."""
    first, other = (x["one"], x["other"]) if kind is dict else x
    y = wave(w, first) + 0.1 * jnp.sin(other)
    return {"one": y, "other": first} if kind is dict else kind([y, first])


@pytest.mark.parametrize("kind", [tuple, list, dict])
def test_tuples_lists_and_dicts_are_accepted(kind: Any):
    """Tuples, lists and dicts are accepted; in Paddle a list is an error of the backward pass, and a dict has no
    gradient."""

    def loss(call: Any) -> Any:
        def of(parameters: Any, x: Any) -> Any:
            state: Any = {"one": x, "other": x * 2} if kind is dict else kind([x, x * 2])
            for w in parameters:
                state = call(parts, w, state, kind)
            return sum(jnp.mean(leaf**2) for leaf in jax.tree.leaves(state))

        return of

    check(loss, weights(LAYERS), batch())


def test_mixed_arguments_without_gradient_are_accepted():
    def block(w: Any, pair: Any, *, scale: float, rows: Any, name: str) -> Any:
        assert name == "block" and isinstance(pair[1], float)
        return wave(w, pair[0]) * (pair[1] + scale) + rows[:, None]

    def loss(call: Any) -> Any:
        def of(parameters: Any, x: Any) -> Any:
            for w in parameters:
                x = call(block, w, (x, 0.5), scale=0.25, rows=jnp.arange(x.shape[0]), name="block")
            return jnp.mean(x**2)

        return of

    check(loss, weights(LAYERS), batch())


def test_keyword_arguments_are_passed_by_name():
    """Keyword arguments are passed by name; Paddle appends their values to the positional arguments."""

    def block(**given: Any) -> Any:
        return wave(given["w"], given["function"])

    def loss(call: Any) -> Any:
        def of(parameters: Any, x: Any) -> Any:
            for w in parameters:
                x = call(block, function=x, w=w)
            return jnp.mean(x**2)

        return of

    check(loss, weights(LAYERS), batch())


def test_non_float_results_are_returned_unchanged():
    """Results that are not floating-point arrays are returned unchanged; Paddle fails with an AssertionError."""

    def block(w: Any, x: Any) -> Any:
        y = wave(w, x)
        return y, None, 3, jnp.argmax(y, axis=1), {"is_positive": y > 0, "name": "block"}

    def loss(call: Any) -> Any:
        def of(parameters: Any, x: Any) -> Any:
            for w in parameters:
                x, nothing, three, best, more = call(block, w, x)
                assert nothing is None and three == 3 and more["name"] == "block"
                x = jnp.where(more["is_positive"], x, 0.5 * x) * three + best[:, None]
            return jnp.mean(x**2)

        return of

    check(loss, weights(LAYERS), batch())


def test_captured_values_alone_get_gradients():
    """Captured values alone may have gradients; in Paddle each of these gradients is None."""

    def loss(call: Any) -> Any:
        def of(parameters: Any, x: Any) -> Any:
            for w in parameters:
                x = call(lambda x, w=w: wave(w, x), x)
            return jnp.mean(x**2)

        return of

    lowered = check(loss, weights(LAYERS), batch())
    assert sines(lowered) == 2 * LAYERS
    gradients = jax.tree.leaves(lowered.compile()(weights(LAYERS), batch())[1])
    assert len(gradients) == 2 * LAYERS and all(bool((gradient != 0).any()) for gradient in gradients)


def test_segment_without_differentiable_result_is_accepted():
    """A segment may have no result with a gradient; Paddle raises an OSError."""

    def loss(call: Any) -> Any:
        def of(parameters: Any, x: Any) -> Any:
            order = call(lambda x: jnp.argsort(jnp.sin(x), axis=0), x)
            for w in parameters:
                x = call(wave, w, x)
            return jnp.mean((x + order) ** 2)

        return of

    check(loss, weights(LAYERS), batch())
