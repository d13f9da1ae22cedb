"""Marks in a model determine which values are kept and recomputed, and change nothing else."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jax.experimental import io_callback

import recompute
from recompute.analysis.explain.saved_values import MARKED
from recompute.test.unit.frontends.jax.steps import batch, block, descent, far_apart, jax, jnp, weights

Mark = Callable[[Any], Any]
checkpoint_name = jax.ad_checkpoint.checkpoint_name
LAYERS = 3


def step_with(mark: Mark) -> Callable[..., Any]:
    """Return a step of three layers, each of which marks its sine."""

    def loss(parameters: Any, x: Any) -> Any:
        for index, w in enumerate(parameters):
            with block(f"block{index}"):
                x = x + jnp.tanh(mark(jnp.sin(x @ w["up"])) ** 2) @ w["down"]
        return jnp.mean(x**2)

    return descent(loss)


def lowered(mark: Mark, **options: Any) -> recompute.jax.Lowered:
    return recompute.jax.jit(step_with(mark), **options).lower(weights(LAYERS), batch())


def sines(lowered: Any) -> int:
    return lowered.as_text().count("stablehlo.sine")


def named(x: Any) -> Any:
    return checkpoint_name(x, "wave")


def test_unmarked_sines_are_recomputed():
    assert sines(lowered(lambda x: x)) == 2 * LAYERS


@pytest.mark.parametrize("mark", [recompute.jax.save, recompute.jax.offload])
def test_saved_values_are_not_recomputed(mark: Mark):
    actual = lowered(mark)
    assert actual.why is None
    assert sines(actual) == LAYERS
    assert (mark is recompute.jax.offload) == any(
        "offload=marked would also move it" in str(remark) for remark in actual.remarks
    )


def test_again_without_segments_recomputes_only_marked():
    actual = lowered(recompute.jax.again, segments="none")
    assert sines(actual) == 2 * LAYERS
    for kept in ("dot_general", "tanh"):
        assert actual.as_text().count(f"stablehlo.{kept}") == actual.plain.as_text().count(f"stablehlo.{kept}")


def test_again_overrides_policy():
    assert sines(lowered(recompute.jax.again, policy="everything_saveable")) == 2 * LAYERS


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "save_only_these_names", "names": ["wave"]},
        {"policy": jax.checkpoint_policies.save_only_these_names("wave")},
        {"save": ["wave"]},
        {"policy": lambda operation, shapes, names: "wave" in names},
        {"policy": lambda operation, shapes, names: operation == "stablehlo.sine" and shapes == ((256, 64),)},
    ],
)
def test_policies_see_checkpoint_names(options: dict[str, Any]):
    assert sines(lowered(named, **options)) == LAYERS


def test_policy_recomputes_the_excluded_name():
    policy = jax.checkpoint_policies.save_any_names_but_these("wave")
    assert sines(lowered(named, policy=policy, segments="block*")) == 2 * LAYERS


@pytest.mark.parametrize("name", ["dots_saveable", "dots_with_no_batch_dims_saveable", "nothing_saveable"])
def test_jax_policy_may_be_given_by_name(name: str):
    ours = lowered(lambda x: x, policy=name).as_text()
    assert lowered(lambda x: x, policy=getattr(jax.checkpoint_policies, name)).as_text() == ours


def test_checkpoints_may_be_given_by_name():
    actual = lowered(named, checkpoints=["wave"])
    assert actual.why is None
    assert sines(actual) == LAYERS


@pytest.mark.parametrize("mark", [recompute.jax.save, recompute.jax.again, recompute.jax.offload, named])
def test_marks_change_neither_results_nor_plain_step(mark: Mark):
    arguments = weights(LAYERS), batch()
    actual = lowered(mark)
    unmarked = jax.jit(step_with(lambda x: x)).lower(*arguments)
    assert actual.plain.as_text() == unmarked.as_text()
    assert 'custom_call_target="recompute' not in str(actual.compile().as_text())
    assert not far_apart(actual.compile()(*arguments), unmarked.compile()(*arguments))


@pytest.mark.parametrize("mark", [recompute.jax.save, recompute.jax.again, recompute.jax.offload])
def test_marks_have_no_effect_in_jax(mark: Mark):
    x = jnp.arange(6.0).reshape(2, 3)

    def f(x: Any) -> Any:
        return jnp.sum(jnp.sin(mark(jnp.cos(x))) ** 2)

    def plain(x: Any) -> Any:
        return jnp.sum(jnp.sin(jnp.cos(x)) ** 2)

    for transform in (
        jax.grad,
        lambda f: jax.jit(jax.grad(f)),
        lambda f: jax.vmap(jax.grad(f)),
        lambda f: jax.grad(lambda x: jnp.sum(jax.vmap(f)(x))),
        lambda f: jax.hessian(f),
        lambda f: jax.grad(jax.checkpoint(f)),
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    ):
        assert not far_apart(transform(f)(x), transform(plain)(x))
    assert "custom_call" not in jax.jit(f).lower(x).as_text()
    assert jax.linear_transpose(lambda x: mark(x) * 2, x)(x)[0].tolist() == (x * 2).tolist()
    assert mark({"a": 1.0, "b": (x, None)})["b"][0] is not None
    assert mark(jax.random.key(0)).dtype == jax.random.key(0).dtype


def test_mark_applies_to_an_argument_of_an_inner_function():
    """A mark in an inner function applies to the value that is computed outside."""

    @jax.jit
    def second(h: Any, w: Any) -> Any:
        return jnp.tanh(recompute.jax.save(h) ** 2) @ w

    def loss(parameters: Any, x: Any) -> Any:
        for index, w in enumerate(parameters):
            with block(f"block{index}"):
                x = x + second(jnp.sin(x @ w["up"]), w["down"])
        return jnp.mean(x**2)

    assert sines(recompute.jax.jit(descent(loss)).lower(weights(LAYERS), batch())) == LAYERS


def test_mark_applies_to_the_result_of_an_inner_function():
    """Only the result of the call is kept, not the values inside."""

    @jax.jit
    def first(x: Any, w: Any) -> Any:
        return jnp.sin(jnp.exp(x @ w))

    def loss(parameters: Any, x: Any) -> Any:
        for index, w in enumerate(parameters):
            with block(f"block{index}"):
                x = x + jnp.tanh(recompute.jax.save(first(x, w["up"])) ** 2) @ w["down"]
        return jnp.mean(x**2)

    actual = recompute.jax.jit(descent(loss), calls=False).lower(weights(LAYERS), batch())
    assert actual.why is None
    assert sines(actual) == LAYERS


def test_useless_mark_on_step_argument_is_reported():
    def loss(w: Any, x: Any) -> Any:
        for _ in range(3):
            with block("layer"):
                x = x + jnp.tanh(jnp.sin(recompute.jax.save(x) @ w["up"]) * 2) @ w["down"]
        return jnp.mean(x**2)

    actual = recompute.jax.jit(jax.value_and_grad(loss)).lower(weights(1)[0], batch())
    (output,) = [str(remark) for remark in actual.remarks if "'save' has no effect here" in str(remark)]
    assert "an argument of the step, and is live anyway" in output
    assert output.startswith(__file__)


def test_marks_in_an_unchanged_loop_are_dropped():
    """Marks in a forward body that is not recomputed are dropped, and the results are kept."""

    def loss(w: Any, x: Any) -> Any:
        def layer(x: Any, _: Any) -> Any:
            return x + jnp.tanh(recompute.jax.save(jnp.sin(recompute.jax.again(x) @ w["up"]))) @ w["down"], None

        with block("before"):
            x = jnp.sin(jnp.exp(jnp.sin(x)))
        return jnp.mean(jax.lax.scan(layer, x, None, length=3)[0] ** 2)

    step, arguments = jax.value_and_grad(loss), (weights(1)[0], batch())
    ours = recompute.jax.jit(step, measure=False, segments="before")
    assert not far_apart(ours(*arguments), jax.jit(step)(*arguments))


def test_marks_work_under_vmap_of_grad():
    def loss(parameters: Any, x: Any) -> Any:
        for index, w in enumerate(parameters):
            with block(f"block{index}"):
                x = x + jnp.tanh(recompute.jax.save(jnp.sin(x @ w["up"])) ** 2) @ w["down"]
        return jnp.mean(x**2)

    each = jax.vmap(jax.value_and_grad(loss), in_axes=(None, 0))
    actual = recompute.jax.jit(each).lower(weights(LAYERS), batch(1024).reshape(4, 256, 16))
    assert actual.why is None
    assert sines(actual) == LAYERS


def test_explain_reports_marks():
    def loss(w: Any, x: Any) -> Any:
        with block("layer"):
            x = recompute.jax.save(jnp.tanh(x @ w["up"])) @ w["down"]
        return jnp.mean(x**2)

    (of_main,) = recompute.jax.jit(jax.value_and_grad(loss)).explain(weights(1)[0], batch())
    assert [value.reason for value in of_main.values if value.operation == "stablehlo.tanh"] == [MARKED]


def _warnings_of(mark: Callable[[int, Any], Any]) -> tuple[list[str], str]:
    """Return the warnings of a call in which `mark` marks a value in each layer, and the printed report."""

    def loss(layers: Any, x: Any) -> Any:
        for index, w in enumerate(layers):
            with jax.named_scope(f"block{index}"):
                x = mark(index, x) + jnp.sin(jnp.tanh(x @ w))
        return (x**2).mean()

    step, arguments = recompute.jax.jit(jax.value_and_grad(loss)), ([jnp.ones((64, 64))] * 4, jnp.ones((512, 64)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            step(*arguments)
    return [
        str(warning.message) for warning in caught if warning.category is recompute.jax.MarkWithoutEffect
    ], " ".join(str(step.report(*arguments)).split())


def test_a_mark_without_effect_is_warned_of_once():
    """A call warns once, and the report begins with the reason and the remedy."""
    messages, report = _warnings_of(lambda index, x: recompute.jax.save(x * 2.0 + 1) if index == 2 else x)
    (message,) = messages
    assert message.startswith("loss: test_marks.py:")
    assert "the mark to save stablehlo.add has no effect: neither the backward pass nor a recomputed" in message
    assert "mark a value that the backward pass reads" in message
    assert f"warning: {message.removeprefix('loss: ')}" in report[:500]


def test_a_mark_on_an_argument_is_warned_of():
    messages, _ = _warnings_of(lambda index, x: recompute.jax.again(x) if index == 0 else x)
    assert [message.partition("here: ")[2] for message in messages] == [
        "the value is an argument of the step, and is live anyway; mark a value computed from it"
    ]


def test_a_line_that_marks_each_layer_is_effective_if_one_mark_is():
    """The first layer marks an argument, and the last one a value that nothing reads again."""
    messages, report = _warnings_of(lambda index, x: recompute.jax.save(x))
    assert not messages and "warning:" not in report


def test_callback_is_no_mark_without_effect():
    """A callback inside a segment is not recomputed, which is neither a warning nor an error with `strict`."""

    def loss(parameters: Any, x: Any) -> Any:
        for w in parameters:
            x = x + jnp.tanh(jnp.sin(x @ w["up"])) @ w["down"]
            x = x + io_callback(lambda _: np.float32(0), jax.ShapeDtypeStruct((), jnp.float32), 0.0)
        return jnp.mean(x**2)

    step = recompute.jax.jit(jax.value_and_grad(loss), strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.MarkWithoutEffect)
        lowered = step.lower(weights(), batch())
    assert any("has side effects" in str(remark) for remark in lowered.remarks)
    assert lowered.why is None


@pytest.mark.parametrize("kind", ["save", "again"])
def test_mark_whose_result_is_unused_warns(kind: str):
    """JAX removes the mark when it lowers the step. In a function that is called twice, one use is enough."""
    mark = getattr(recompute.jax, kind)

    def layer(w: Any, x: Any, is_used: bool) -> Any:
        marked = mark(jnp.sin(x @ w["up"]))
        return x + jnp.tanh(marked if is_used else jnp.sin(x @ w["up"])) @ w["down"]

    def loss(parameters: Any, x: Any, *used: bool) -> Any:
        for w, is_used in zip(parameters, used, strict=True):
            x = layer(w, x, is_used)
        return jnp.mean(x**2)

    def lowered(*used: bool) -> Any:
        def step(parameters: Any, x: Any) -> Any:
            return jax.value_and_grad(lambda p: loss(p, x, *used))(parameters)

        return recompute.jax.jit(step).lower(weights(), batch())

    reason = rf"test_marks.py:\d+:\d+: recompute.jax.{kind} has no effect: no result of the step depends on the value"
    with pytest.warns(recompute.jax.MarkWithoutEffect, match=rf"{reason}.* \(3 times\)$") as caught:
        report = lowered(False, False, False).comparison
    assert len(caught) == 1
    assert f"recompute.jax.{kind} has no effect" in str(report)
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.MarkWithoutEffect)
        lowered(False, True, True)
