"""`recompute.jax.paddle.recompute_sequential`: a list of stages divided into segments, each of which is recomputed."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

import recompute
from recompute.test.unit.frontends.jax.paddle.paddle_cases import (
    batch,
    jax,
    jnp,
    paddle,
    same_bits,
    sines,
    wave,
    weights,
)
from recompute.test.unit.frontends.jax.steps import far_apart

pytestmark = pytest.mark.slow

STAGES = 5


def loss(parameters: Any, x: Any, ctx: Any) -> Any:
    stages = [partial(wave, w) for w in parameters]
    if ctx is None:
        for stage in stages:
            x = stage(x)
    else:
        x = paddle.recompute_sequential(ctx, stages, x)
    return jnp.mean(x**2)


def lowered(ctx: Any, *arguments: Any) -> Any:
    step = jax.value_and_grad(partial(loss, ctx=ctx))
    return recompute.jax.jit(step, measure=False).lower(*arguments)


@pytest.mark.slow("2-", "3-", "4-", "5-")
@pytest.mark.parametrize("segments", range(1, STAGES + 1))
@pytest.mark.parametrize("rows", [1, 2, 5, 256])
def test_any_batch_size_and_segment_count_is_accepted(rows: int, segments: int):
    """Every batch size and number of segments is accepted. Paddle iterates over the batch of a result: a TypeError for
    two rows, and a lost dimension for one."""
    expected = jax.jit(jax.value_and_grad(partial(loss, ctx=None)))(weights(STAGES), batch(rows))
    marked = jax.jit(jax.value_and_grad(partial(loss, ctx={"segments": segments})))
    assert same_bits(marked(weights(STAGES), batch(rows)), expected)


@pytest.mark.parametrize("ctx", [{}, {"segments": 1}, {"segments": 2}, {"segments": STAGES}])
def test_every_segment_is_recomputed(ctx: Any):
    """Every segment is recomputed. Paddle leaves out the last one, although the default is a single segment."""
    actual = lowered(ctx, weights(STAGES), batch())
    assert actual.why is None
    assert sines(actual) == 2 * STAGES
    plain = jax.jit(jax.value_and_grad(partial(loss, ctx=None)))(weights(STAGES), batch())
    assert far_apart(actual.compile()(weights(STAGES), batch()), plain) == []


def test_segments_differ_by_one_stage():
    names = [
        group.segment
        for step in lowered({"segments": 2}, weights(STAGES), batch()).rewritten.plans
        for group in step.plan.groups
    ]
    assert sorted(names) == ["stages0to2", "stages3to4"]


def test_more_segments_need_less_memory():
    """More segments need less memory; a single segment recomputes all values at once."""
    sizes = [
        lowered({"segments": segments}, weights(8), batch(2048)).compile().memory_analysis().temp_size_in_bytes
        for segments in (1, 4)
    ]
    assert sizes[1] < sizes[0]


def test_tuple_is_unpacked_and_list_is_not():
    def first(x: Any, y: Any, *, scale: Any) -> Any:
        return x * scale, y

    def second(x: Any, y: Any) -> Any:
        return [x, y]

    def third(pair: Any) -> Any:
        return (pair[0] + pair[1],)

    for segments in (1, 2, 3):
        (result,) = paddle.recompute_sequential({"segments": segments}, (first, second, third), 2.0, 3.0, scale=10.0)
        assert result == 23.0


def test_non_array_result_is_returned():
    assert paddle.recompute_sequential({}, [lambda: None, lambda none: {"none": none}]) == {"none": None}


def test_switch_applies_to_every_segment():
    def text(ctx: Any) -> str:
        step = jax.jit(jax.grad(partial(loss, ctx=ctx)))
        return step.lower(weights(2), batch()).as_text(debug_info=True)

    message = text({"segments": 2, "preserve_rng_state": False})
    for stage in ("stages0to0", "stages1to1"):
        assert stage in message
    assert "+parallel_optimizer_comm_recompute-preserve_rng_state" in message
    assert "preserve_rng_state" not in text({"segments": 2})


def of_nnx() -> Any:
    nnx: Any = pytest.importorskip("flax.nnx", reason="has a Sequential")
    stages = [nnx.Linear(16, 64, rngs=nnx.Rngs(0)), jnp.sin, jnp.tanh, nnx.Linear(64, 16, rngs=nnx.Rngs(1))]
    return nnx.Sequential(*stages)


def of_equinox() -> Any:
    eqx: Any = pytest.importorskip("equinox", reason="has a Sequential")
    sizes = zip([16, 64], [64, 16], strict=True)
    ends = [eqx.nn.Linear(*size, key=jax.random.key(size[0])) for size in sizes]
    return eqx.nn.Sequential(
        [eqx.nn.Lambda(item) for item in (jax.vmap(ends[0]), jnp.sin, jnp.tanh, jax.vmap(ends[1]))]
    )


@pytest.mark.parametrize("make", [of_nnx, of_equinox])
def test_framework_sequential_is_split(make: Any):
    model, x = make(), batch()

    def gradient(call: Any) -> Any:
        return jax.jit(jax.grad(lambda x: jnp.mean(call(x) ** 2)))(x)

    assert same_bits(gradient(partial(paddle.recompute_sequential, {"segments": 2}, model)), gradient(model))


def test_linen_sequential_keeps_its_parameters():
    nn: Any = pytest.importorskip("flax.linen", reason="has a Sequential")

    class Network(nn.Module):
        segments: int

        @nn.compact
        def __call__(self, x: Any) -> Any:
            whole = nn.Sequential([nn.Dense(64), jnp.sin, jnp.tanh, nn.Dense(16)])
            return paddle.recompute_sequential({"segments": self.segments}, whole, x) if self.segments else whole(x)

    variables = [Network(segments).init(jax.random.key(0), batch()) for segments in (0, 2)]
    assert same_bits(*variables)
    gradients = [
        jax.jit(jax.grad(lambda v, n=n: jnp.mean(Network(n).apply(v, batch()) ** 2)))(variables[0]) for n in (0, 2)
    ]
    assert same_bits(*gradients)


@pytest.mark.parametrize(
    ("ctx", "error", "words"),
    [
        ({"segments": 0}, ValueError, "segments must be at least 1, not 0"),
        ({"segments": -2}, ValueError, "segments must be at least 1, not -2"),
        ({"segments": 3}, ValueError, "cannot divide 2 functions into 3 segments"),
        ({"segments": 2.0}, TypeError, "segments must be an int, not float"),
        ({"segments": True}, TypeError, "segments must be an int, not bool"),
        ({"preserve_rng_state": 1}, TypeError, "preserve_rng_state must be True or False, not 1"),
        ({"segment": 2}, ValueError, "ctx has the unknown key 'segment'; expected segments or preserve_rng_state"),
        (2, TypeError, "ctx must be a dict such as .* not int"),
        (None, TypeError, "ctx must be a dict such as .* not NoneType"),
    ],
)
def test_invalid_contexts_are_rejected(ctx: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=f"recompute_sequential: {words}"):
        paddle.recompute_sequential(ctx, [jnp.sin, jnp.cos], 1.0)


@pytest.mark.parametrize(
    ("functions", "error", "words"),
    [
        (jnp.sin, TypeError, "functions must be a list or tuple of callables, or an object with `layers`, not .*"),
        (None, TypeError, "functions must be a list or tuple of callables, or an object with `layers`, not NoneType"),
        (SimpleNamespace(layers=3), TypeError, "functions must be a list or tuple .* not SimpleNamespace"),
        ([jnp.sin, 3], TypeError, "expected a function, or a module of flax or equinox, not int"),
        ([], ValueError, "cannot divide 0 functions into 1 segment"),
    ],
)
def test_invalid_functions_are_rejected(functions: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=f"recompute_sequential:? ?{words}"):
        paddle.recompute_sequential({}, functions, 1.0)
