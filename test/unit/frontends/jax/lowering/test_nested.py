"""Steps that are called in another `jax.jit` are rewritten there, with equal results."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation.compiler_options import DISABLED, DROPS_BARRIERS
from recompute.frontends.jax.internals import private
from recompute.frontends.jax.lowering import nested
from recompute.test.unit.frontends.jax.steps import batch, far_apart, forward, jax, jnp, mlp, temporaries, weights

KEEPING = {DISABLED: DROPS_BARRIERS}
Step = Callable[..., Any]


def without_warnings(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", recompute.jax.NothingSaved)
        warnings.simplefilter("ignore", recompute.jax.BarriersDropped)
        return call()


def called(step: Step) -> Step:
    return lambda parameters, x: step(parameters, x)


def repeated(step: Step) -> Step:
    """Return three steps in one loop."""

    def loop(parameters: Any, x: Any) -> Any:
        def body(state: Any, x: Any) -> Any:
            value, state = step(state, x)
            return state, value

        return jax.lax.scan(body, parameters, jnp.stack([x, x * 2, x * 3]))

    return loop


@pytest.mark.parametrize("around", [called, repeated])
def test_nested_step_saves_memory_with_equal_results(around: Callable[[Step], Step]):
    arguments = weights(), batch(2048)
    ours, plain = around(recompute.jax.jit(mlp().step)), around(mlp().step)
    less = without_warnings(lambda: jax.jit(ours).lower(*arguments).compile(KEEPING))
    more = jax.jit(plain).lower(*arguments).compile(KEEPING)
    assert less.memory_analysis().temp_size_in_bytes < 0.6 * more.memory_analysis().temp_size_in_bytes
    assert far_apart(less(*arguments), more(*arguments)) == []


@pytest.mark.parametrize("merges", [True, False])
def test_dropped_barriers_are_reported(merges: bool, monkeypatch: pytest.MonkeyPatch):
    """There is a warning only for versions of XLA:CPU that merge the copies when barriers are dropped."""
    monkeypatch.setattr(nested, "merges_copies", lambda _: merges)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jax.jit(called(recompute.jax.jit(mlp().step))).lower(weights(), batch())
    assert [warning.category for warning in caught] == [recompute.jax.BarriersDropped] * merges
    assert all(
        message.filename == __file__ and "drops the barriers on CPU" in str(message.message) for message in caught
    )
    monkeypatch.setenv("XLA_FLAGS", f"--{DISABLED}={DROPS_BARRIERS}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(called(recompute.jax.jit(mlp().step))).lower(weights(), batch())


def dropped(h: Any, key: Any) -> Any:
    return jnp.where(jax.random.bernoulli(key, 0.9, h.shape), h / 0.9, 0)


@pytest.mark.parametrize("around", [called, repeated])
def test_nested_step_draws_equal_random_bits(around: Callable[[Step], Step]):
    def layer(w: Any, x: Any, index: int) -> Any:
        return x + dropped(jnp.sin(x @ w["up"]), jax.random.key(index)) @ w["down"]

    arguments = weights(), batch(2048)
    ours, plain = around(recompute.jax.jit(mlp(layer).step)), around(mlp(layer).step)
    less = without_warnings(lambda: jax.jit(ours).lower(*arguments).compile(KEEPING))
    more = jax.jit(plain).lower(*arguments).compile(KEEPING)
    assert less.memory_analysis().temp_size_in_bytes < 0.95 * more.memory_analysis().temp_size_in_bytes
    assert far_apart(less(*arguments), more(*arguments)) == []


def test_unserializable_module_leaves_plain_step(monkeypatch: pytest.MonkeyPatch):
    def fail(text: str) -> bytes:
        raise ValueError("a dialect is missing")

    monkeypatch.setattr(private, "portable_artifact", fail)
    with pytest.warns(recompute.jax.NothingSaved, match="cannot serialize the rewritten step: a dialect is missing"):
        jax.jit(called(recompute.jax.jit(mlp().step))).lower(weights(), batch())


def test_marks_and_selections_apply_to_nested_steps():
    def layer(w: Any, x: Any, index: int) -> Any:
        return x + jnp.tanh(recompute.jax.save(jnp.sin(x @ w["up"])) ** 2) @ w["down"]

    def sines(step: Step) -> int:
        return (
            without_warnings(lambda: jax.jit(called(step)).lower(weights(), batch())).as_text().count("stablehlo.sine")
        )

    assert sines(recompute.jax.jit(mlp(layer).step)) == len(weights())
    assert sines(recompute.jax.jit(mlp().step)) == 2 * len(weights())
    assert sines(recompute.jax.jit(mlp().step, segments="block1")) == len(weights()) + 1
    with pytest.raises(recompute.Refusal, match="no segment matches 'nowhere'"):
        sines(recompute.jax.jit(mlp().step, segments="nowhere"))


def test_nested_step_accepts_static_named_and_weak_arguments():
    def step(count: int, parameters: Any, x: Any, *, scale: Any) -> Any:
        value, state = mlp().step(parameters[:count], x)
        return {"value": value * scale, "state": state}

    ours = recompute.jax.jit(step, static_argnums=0)
    result = without_warnings(lambda: jax.jit(lambda w, x: ours(2, w, x, scale=3))(weights(), batch()))
    assert far_apart(result, jax.jit(lambda w, x: step(2, w, x, scale=3))(weights(), batch())) == []


def test_nested_step_without_gradient_warns():
    with pytest.warns(recompute.jax.NothingSaved, match="computes no gradient"):
        step = jax.jit(called(recompute.jax.jit(forward())))(weights(), batch())
    assert far_apart(step, jax.jit(forward())(weights(), batch())) == []
    strict = recompute.jax.jit(forward(), strict=True)
    with pytest.raises(recompute.Refusal, match="no gradient"):
        jax.jit(called(strict)).lower(weights(), batch())


GRADIENT_INSIDE = r"is called under jax.grad, jax.jvp .*; take the gradient inside: recompute.jax.jit\(jax.value_and_"
BATCH_INSIDE = r"is called under jax.vmap, .*; batch inside: recompute.jax.jit\(jax.vmap\(step, "
MAP_INSIDE = r"is called under jax.shard_map or .*; map inside: recompute.jax.jit\(jax.shard_map\(step, "


def on_one_device(function: Step) -> Step:
    """Return the function under `jax.shard_map`."""
    mesh, whole = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,)), jax.sharding.PartitionSpec()
    return jax.shard_map(function, mesh=mesh, in_specs=whole, out_specs=whole, check_vma=False)


def test_remedies_of_the_hints_reduce_memory():
    x = jnp.stack([batch(), batch() * 2])
    mapped = jax.vmap(mlp().step, in_axes=(None, 0))
    assert recompute.jax.jit(mapped).lower(weights(), x).rewritten is not None
    mapped = on_one_device(lambda x: mlp().step(weights(), x))
    assert recompute.jax.jit(mapped).lower(batch()).rewritten is not None


@pytest.mark.parametrize(
    ("transform", "remedy"),
    [
        (lambda step: jax.vmap(lambda x: step(weights(), x)), BATCH_INSIDE),
        (lambda step: jax.jit(jax.vmap(lambda x: step(weights(), x))), BATCH_INSIDE),
        (lambda step: jax.jit(jax.grad(lambda x: step(weights(), x[0])[0])), GRADIENT_INSIDE),
        (lambda step: jax.grad(jax.jit(lambda x: step(weights(), x[0])[0])), GRADIENT_INSIDE),
        (lambda step: lambda x: jax.jvp(lambda x: step(weights(), x[0])[0], (x,), (x,)), GRADIENT_INSIDE),
        (lambda step: jax.jit(jax.grad(jax.checkpoint(lambda x: step(weights(), x[0])[0]))), GRADIENT_INSIDE),
        (lambda step: on_one_device(lambda x: step(weights(), x[0])), MAP_INSIDE),
        (lambda step: jax.jit(on_one_device(lambda x: step(weights(), x[0]))), MAP_INSIDE),
    ],
)
def test_other_transformations_run_the_plain_step_with_their_own_hint(transform: Callable[[Step], Step], remedy: str):
    """The plain step runs under other transformations, with a warning that names the transformation to move inside."""
    x = jnp.stack([batch(), batch() * 2])
    expected = transform(jax.jit(mlp().step))(x)
    with pytest.warns(recompute.jax.NothingSaved, match=remedy):
        result = transform(recompute.jax.jit(mlp().step))(x)
    assert far_apart(result, expected) == []


def test_shape_only_tracing_works():
    step = recompute.jax.jit(mlp().step)
    assert far_apart(
        jax.tree.map(lambda item: jnp.zeros(item.shape, item.dtype), jax.eval_shape(step, weights(), batch())),
        jax.tree.map(jnp.zeros_like, mlp().step(weights(), batch())),
    ) == []  # fmt: skip
    assert "recompute_step" in str(jax.make_jaxpr(step)(weights(), batch()))


def test_nested_step_keeps_effects(capfd: pytest.CaptureFixture[str]):
    def step(parameters: Any, x: Any) -> Any:
        jax.debug.print("seen {}", x[0, 0] * 0 + 7)
        return mlp().step(parameters, x)

    result = without_warnings(lambda: jax.jit(called(recompute.jax.jit(step)))(weights(), batch()))
    jax.effects_barrier()
    assert "seen 7" in capfd.readouterr().out
    assert far_apart(result, jax.jit(mlp().step)(weights(), batch())) == []


def test_each_gradient_is_a_step_of_its_own():
    """Each gradient is a step of its own, as in adversarial networks."""
    value, step = jax.value_and_grad(forward()), recompute.jax.jit(jax.value_and_grad(forward()))

    def both(take: Step) -> Step:
        def adversaries(first: Any, second: Any, x: Any) -> Any:
            return take(first, x), take(second, x * 2)

        return adversaries

    arguments = weights(), weights(2), batch(2048)
    less = without_warnings(lambda: jax.jit(both(step)).lower(*arguments).compile(KEEPING))
    more = jax.jit(both(value)).lower(*arguments).compile(KEEPING)
    assert less.memory_analysis().temp_size_in_bytes < 0.75 * more.memory_analysis().temp_size_in_bytes
    assert far_apart(less(*arguments), more(*arguments)) == []
    whole = recompute.jax.jit(both(value)).lower(*arguments).compile()
    assert temporaries(whole) <= less.memory_analysis().temp_size_in_bytes


def test_unfitting_plan_is_an_error_in_a_nested_step():
    """The error of the planner is raised; the plain step does not run silently."""

    def fails(graph: recompute.Graph) -> recompute.Plan:
        raise ValueError("no plan today")

    for options, kind, words in (
        ({"planner": fails}, ValueError, "no plan today"),
        ({"plan": '{"recompute_plan": 1, "steps": []}'}, recompute.Refusal, "the plan has no entry for"),
        (
            {"pipeline": "recompute-verify,recompute{segments=nowhere}"},
            recompute.Refusal,
            "no segment matches 'nowhere'",
        ),
    ):
        keywords: Any = options
        with pytest.raises(kind, match=words):
            jax.jit(called(recompute.jax.jit(mlp().step, **keywords))).lower(weights(), batch())


@pytest.mark.slow
def test_nested_step_keeps_no_tracers():
    """No traced value outlives the enclosing trace, although the step does."""
    step = recompute.jax.jit(mlp().step)
    kept: list[Any] = []

    def outer(parameters: Any, x: Any) -> Any:
        kept.append(weakref.ref(x))
        return step(parameters, x)

    without_warnings(lambda: jax.jit(outer).lower(weights(), batch()))
    gc.collect()
    assert [value() for value in kept] == [None]


def test_nested_step_joins_outer_step() -> None:
    """The nested steps save as much as one step, with equal results and without a warning about barriers."""
    inner = recompute.jax.jit(jax.value_and_grad(forward()))

    def train_step(w: Any, x: Any) -> Any:
        value, gradient = inner(w, x)
        return value, jax.tree.map(lambda w, g: w - 0.01 * g, w, gradient)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = recompute.jax.jit(train_step)
        report = step.report(weights(), batch())
        outcome = step(weights(), batch())
    alone = recompute.jax.jit(mlp().step)
    assert report.proved and report.chosen.temporaries == alone.report(weights(), batch()).chosen.temporaries
    assert not far_apart(outcome, alone(weights(), batch()))


def test_inner_options_are_ignored_with_a_warning() -> None:
    inner = recompute.jax.jit(jax.value_and_grad(forward()), segments="block0")

    def train_step(w: Any, x: Any) -> Any:
        return inner(w, x)

    with pytest.warns(recompute.jax.OptionsIgnored, match=r"loss is called inside .*\(train_step\), which"):
        assert recompute.jax.jit(train_step).report(weights(), batch()).copies > 0


def test_scanned_inner_steps_are_recomputed() -> None:
    inner = recompute.jax.jit(mlp().step)

    def many(w: Any, batches: Any) -> Any:
        return jax.lax.scan(lambda w, x: inner(w, x)[::-1], w, batches)

    batches = jax.numpy.stack([batch(), batch()])
    step = recompute.jax.jit(many)
    report = step.report(weights(), batches)
    assert report.copies > 0 and (report.chosen.temporaries or 0) < 0.8 * (report.plain.temporaries or 0)
    assert not far_apart(step(weights(), batches), jax.jit(many)(weights(), batches))
