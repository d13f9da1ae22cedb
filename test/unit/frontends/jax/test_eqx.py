"""`recompute.eqx.filter_jit`: training equal to `eqx.filter_jit` bit for bit, in less memory."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import recompute

pytest.importorskip("jax", reason="the frontend for JAX")
from recompute.frontends.jax.lowering import step_tracer  # isort: skip
from recompute.frontends.jax.lowering.lowered import Lowered  # isort: skip

eqx: Any = pytest.importorskip("equinox")
optax: Any = pytest.importorskip("optax")
jax: Any = __import__("jax")
jnp: Any = jax.numpy


@pytest.fixture(autouse=True)
def _nothing_saved_is_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.NothingSaved)
        yield


class Network(eqx.Module):
    layers: list[Any]
    activation: Callable[..., Any]  # Not static: a leaf that is no array.

    def __init__(self):
        self.layers = [eqx.nn.MLP(16, 16, 64, 1, key=key) for key in jax.random.split(jax.random.key(0), 3)]
        self.activation = jnp.sin

    def __call__(self, x):
        for layer in self.layers:
            x = x + self.activation(layer(x))
        return x


OPTIMIZER = optax.adam(1e-2)


def loss_of(network, x, y):
    return jnp.mean((jax.vmap(network)(x) - y) ** 2)


def train_step(network, state, x, y, scale=1.0):
    value, gradients = eqx.filter_value_and_grad(loss_of)(network, x, y)
    updates, state = OPTIMIZER.update(gradients, state)
    return eqx.apply_updates(network, jax.tree.map(lambda update: scale * update, updates)), state, value


def start() -> tuple[Any, Any, Any, Any]:
    network = Network()
    state = OPTIMIZER.init(eqx.filter(network, eqx.is_inexact_array))
    return network, state, jnp.ones((256, 16)), jnp.zeros((256, 16))


@pytest.fixture(scope="module")
def step() -> Any:
    """The rewritten training step, which the tests share: it is rewritten and compiled once for `start()`."""
    return recompute.eqx.filter_jit(train_step)


def trained(step: Any, **keywords: Any) -> tuple[list[float], Any]:
    """Return three losses and the network."""
    (network, state, *batch), losses = start(), list[float]()
    for _ in range(3):
        network, state, value = step(network, state, *batch, **keywords)
        losses.append(float(value))
    return losses, network


def test_training_equals_that_of_filter_jit(step: Any):
    losses, network = trained(step)
    expected_losses, expected = trained(eqx.filter_jit(train_step))
    assert losses == expected_losses and losses[0] > losses[-1]
    assert type(network) is Network and network.activation is jnp.sin
    assert bool(eqx.tree_equal(network, expected))
    assert repr(step).startswith("<recompute.eqx.filter_jit(train_step), lowered for 1 call: ")


def test_each_static_argument_gives_a_step_of_its_own():
    step = recompute.eqx.filter_jit(train_step)
    assert trained(step, scale=0.5)[0] == trained(eqx.filter_jit(train_step), scale=0.5)[0] != trained(step)[0]
    assert repr(step).startswith("<recompute.eqx.filter_jit(train_step), lowered for 2 calls: ")
    step.clear_cache()
    assert repr(step) == "<recompute.eqx.filter_jit(train_step), lowered for no calls>"


def test_reports_have_the_names_of_modules(step: Any):
    given = start()
    report = step.report(*given)
    assert {row.module for row in report.modules} >= {"Network/layers0", "Network/layers1", "Network/layers2"}
    assert report.proved and (report.chosen.temporaries or 0) < 0.6 * (report.plain.temporaries or 0)
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if eqx.is_array(leaf) else leaf,
                          given)  # fmt: skip
    assert str(step.report(*shapes)) == str(report) and len(step.explain(*given)) == 1
    step(*given)
    assert repr(step).startswith("<recompute.eqx.filter_jit(train_step), lowered for 1 call: ")
    assert "named_scope" not in eqx.nn.Linear.__call__.__code__.co_names, "the scopes end with the trace"


def test_donated_arguments_are_deleted():
    step = recompute.eqx.filter_jit(donate="all-except-first")(lambda data, *rest: train_step(*rest, *data))
    network, state, x, y = start()
    new, *_ = step((x, y), network, state)
    assert network.layers[0].layers[0].weight.is_deleted() and not x.is_deleted()
    assert not new.layers[0].layers[0].weight.is_deleted()


def test_methods_and_modules_are_jitted():
    class Trainer(eqx.Module):
        network: Any

        @recompute.eqx.filter_jit
        def gradient(self, x, y):
            return eqx.filter_value_and_grad(loss_of)(self.network, x, y)

    class Loss(eqx.Module):
        network: Any

        def __call__(self, x, y):
            return eqx.filter_value_and_grad(loss_of)(self.network, x, y)

    network, _, x, y = start()
    value, gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss_of))(network, x, y)
    for ours in (Trainer(network).gradient, recompute.eqx.filter_jit(Loss(network))):
        found_value, found_gradient = ours(x, y)
        assert float(found_value) == float(value) and bool(eqx.tree_equal(found_gradient, gradient))


def test_step_is_lowered_and_compiled_by_hand(step: Any):
    given = start()
    lowered = step.lower(*given)
    assert lowered.lowered.why is None and lowered.lowered.rewritten.copies > 0
    network, _, value = lowered.compile()(*given)
    expected, _, expected_value = eqx.filter_jit(train_step)(*given)
    assert float(value) == float(expected_value) and bool(eqx.tree_equal(network, expected))


def test_lowering_compiling_and_calling_pay_once_under_one_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    counts: dict[str, int] = {"rewrite": 0, "compile": 0}

    def counting(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            counts[kind] += 1
            return function(*args, **kwargs)

        return counted

    monkeypatch.setattr(step_tracer, "lower_and_rewrite", counting("rewrite", step_tracer.lower_and_rewrite))
    monkeypatch.setattr(Lowered, "compile_rewritten", counting("compile", Lowered.compile_rewritten))
    caplog.set_level("INFO", "recompute.progress")
    step, given = recompute.eqx.filter_jit(train_step), start()
    step.lower(*given).compile()(*given)
    step(*given)
    step.report(*given)
    assert counts == {"rewrite": 1, "compile": 1}
    assert caplog.messages and all(message.startswith("recompute.eqx: train_step: ") for message in caplog.messages)


def test_equinox_errors_pass_through():
    def step(network, x, y):
        x = eqx.error_if(x, jnp.any(x > 0), "positive")
        return eqx.filter_grad(loss_of)(network, x, y)

    network, _, x, y = start()
    with pytest.raises(Exception, match="positive"):
        recompute.eqx.filter_jit(step)(network, x, y)


def test_unknown_keywords_are_rejected():
    with pytest.raises(TypeError, match="one function, not 2"):
        recompute.eqx.filter_jit(train_step, train_step)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"recompute\.eqx\.filter_jit got an .* 'budgett'; did you mean 'budget'\?"):
        recompute.eqx.filter_jit(train_step, budgett="8GiB")  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r'does not accept the option donate_argnums; use donate="all"'):
        recompute.eqx.filter_jit(train_step, donate_argnums=0)
    with pytest.raises(TypeError, match=r"does not accept the option in_shardings; use eqx\.filter_shard"):
        recompute.eqx.filter_jit(train_step, in_shardings=None)
    with pytest.raises(ValueError, match="donate"):
        recompute.eqx.filter_jit(train_step, donate="some")
    with pytest.raises(ValueError, match="invalid budget"):
        recompute.eqx.filter_jit(train_step, budget="much")


def test_jax_jit_of_equinox_step_names_filter_jit():
    step = recompute.jax.jit(train_step)
    for method in (step, step.report, step.explain, step.lower, step.trace):
        with pytest.raises(TypeError, match=r"non-array argument(.|\n)*Use recompute\.eqx\.filter_jit in") as e:
            method(*start())
        assert "train_step takes an equinox module" in str(e.value)
    with pytest.raises(TypeError) as e:
        recompute.jax.jit(train_step)("no module", 1, 2, 3)
    assert "equinox" not in str(e.value)


def test_jax_jit_of_nnx_step_names_nnx_jit():
    nnx: Any = pytest.importorskip("flax.nnx")

    class Graph(nnx.Module, pytree=False):  # pyright: ignore[reportGeneralTypeIssues, reportCallIssue]
        def __init__(self):
            self.w = nnx.Param(jnp.ones((4, 4)))

    with pytest.raises(TypeError, match=r"Use recompute\.nnx\.jit instead of recompute\.jax\.jit"):
        recompute.jax.jit(lambda model, x: jnp.sum(model.w[...] @ x))(Graph(), jnp.ones(4))


def test_explain_reports_budget_fit(step: Any):
    plain = recompute.jax.explain(step, *start(), budget="1GiB")
    assert plain.fit is not None and plain.fit.fits and plain.copies == 0
    rewritten = recompute.jax.explain(step, *start(), budget=0.8)
    assert rewritten.fit is not None and rewritten.fit.fits and rewritten.copies > 0


@pytest.mark.parametrize(("option", "value"), [("budget", "8"), ("time_limit", "3"), ("measure", "no")])
def test_messages_name_the_caller(option: str, value: str):
    with pytest.raises((TypeError, ValueError), match=r"^recompute\.eqx\.filter_jit: "):
        recompute.eqx.filter_jit(lambda model: model, **{option: value})  # pyright: ignore[reportArgumentType]


def test_misspelt_keyword_of_a_call_gets_a_suggestion():
    step: Any = recompute.eqx.filter_jit(train_step)
    for call in (step, step.lower, step.report, step.explain, partial(recompute.eqx.explain, step)):
        with pytest.raises(TypeError, match=r"'budgt'; did you mean 'budget', an option of recompute\.jax\.jit"):
            call(*start(), budgt="1GiB")


def test_explain_refuses_filter_jit_with_the_remedy():
    with pytest.raises(TypeError, match=r"result of eqx\.filter_jit; give the result of recompute\.eqx\.filter_jit"):
        recompute.jax.explain(eqx.filter_jit(train_step), *start())


def test_donation_hint_states_that_all_arguments_are_donated(step: Any):
    from recompute.frontends.jax.reports.donation import Donation

    donation = Donation("donate_argnums=(0,)", 2**20)
    hint = str(step.reworded_report(replace(step.report(*start()), donation=donation)))
    assert 'next: donate="all" frees up to 1.0 MiB; it donates all arrays among the arguments, also the batch' in hint
