"""Options that match nothing are errors with suggestions."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import warnings
from typing import Any

import pytest
from jax.ad_checkpoint import checkpoint_name

import recompute
from recompute.frontends.jax.keywords.name_check import UnknownName
from recompute.test.unit.frontends.jax.steps import batch, forward, jax, jnp, mlp, weights


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"save": ["tahn"]}, "step: save='tahn' matches no value of the step; similar names are: tanh"),
        ({"names": ["block7*"]}, "step: names='block7\\*' matches no value of the step"),
        ({"save": ["block1"]}, "step: save='block1' names a scope: write 'block1/\\*' for the values in it"),
        ({"save": ["sin", "nobody"]}, "save='nobody' matches no value"),
        (
            {"save": ["zzz"]},
            "matches no value of the step; the scopes are: block0/\\*, block1/\\*, block2/\\*",
        ),
        ({"names": ["blok1"]}, "names='blok1' matches no value of the step; similar names are: .*block1/"),
    ],
)
def test_unknown_names_are_rejected_with_suggestions(option: dict[str, Any], message: str):
    step = recompute.jax.jit(mlp().step, segments="block*", **option)
    with pytest.raises(UnknownName, match=message):
        step(weights(), batch())
    with pytest.raises(ValueError, match=message):
        step.report(weights(), batch())


def test_named_values_are_listed_for_a_name_unlike_all() -> None:
    def layer(w: Any, x: Any, index: int) -> Any:
        return x + jnp.tanh(checkpoint_name(x @ w["up"], "hidden")) @ w["down"]

    step = recompute.jax.jit(mlp(layer).step, save=["zzz"])
    with pytest.raises(UnknownName, match="matches no value of the step; the named values are: hidden"):
        step(weights(), batch())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoints": ["Blok_0"]}, "'block0' is a scope: name a value in it, such as 'block0/add'"),
        ({"checkpoints": ["qqqqq"]}, "name values of the forward pass, such as 'block0/add', 'block1/add'"),
        (
            {"exclude": ["Blok_0"]},
            "such as 'main:stablehlo.dot_general'.*to give names of values, use the option save",
        ),
    ],
)
def test_unknown_checkpoints_and_exclusions_are_explained_by_examples(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recompute.jax.jit(mlp().step, **options)(weights(), batch())


def test_names_in_called_functions_match():
    """A name inside a called function matches together with its caller's scope, inlined or not."""

    def layer(w: Any, x: Any, index: int) -> Any:
        def activation(x: Any) -> Any:
            return jnp.tanh(jnp.sin(x))

        return x + jax.jit(activation)(x @ w["up"]) @ w["down"]

    step = recompute.jax.jit(mlp(layer).step, segments="block*", save=["block1/tanh", "sin*"])
    assert step.lower(weights(), batch()).why is None


def test_budget_of_an_unknown_segment_is_rejected():
    step = recompute.jax.jit(mlp().step, segment_budgets={"blokc0": "50%"})
    with pytest.raises(ValueError, match=r"no segment matches 'blokc0'; similar segments are: block0"):
        step(weights(), batch())


def test_infeasible_segment_budget_is_rejected():
    step = recompute.jax.jit(mlp().step, segment_budgets={"block0": 1})
    with pytest.raises(recompute.Refusal, match="block0"):
        step(weights(), batch())


def test_unchanged_step_warns_once():
    step = recompute.jax.jit(forward())
    with pytest.warns(recompute.jax.NothingSaved, match="computes no gradient.*take the gradient inside") as caught:
        for _ in range(3):
            step(weights(), batch())
    assert len(caught) == 1


def named_loss(w: Any, x: Any) -> Any:
    for index, layer in enumerate(w):
        with recompute.jax.block(f"block{index}"):
            x = x + jnp.tanh(checkpoint_name(jnp.sin(x @ layer["up"]), "hidden")) @ layer["down"]
    return jnp.mean(x**2)


def test_policy_with_names_for_a_step_without_named_values() -> None:
    policy = jax.checkpoint_policies.save_only_these_names("zz")
    missing = "step: policy: the step has no value with the checkpoint_name 'zz', and no value with another one; name"
    with pytest.raises(ValueError, match=f"{missing} values with jax.ad_checkpoint.checkpoint_name$"):
        recompute.jax.jit(mlp().step, policy=policy)(weights(), batch())


@pytest.mark.parametrize("wrap", [lambda step: step, jax.jit])
@pytest.mark.parametrize("policy", ["save_only_these_names", "save_any_names_but_these"])
def test_unmatched_policy_names_are_rejected_or_warned(wrap: Any, policy: str) -> None:
    """A policy is refused if none of its names matches, and causes a warning if only some match."""

    def call(*names: str) -> None:
        result = getattr(jax.checkpoint_policies, policy)(*names)
        wrap(recompute.jax.jit(jax.value_and_grad(named_loss), policy=result))(weights(), batch())

    missing = "loss: policy: the step has no value with the checkpoint_name "
    with pytest.raises(ValueError, match=f"{missing}'hiden'; similar names are: hidden"):
        call("hiden")
    with pytest.raises(ValueError, match=f"{missing}'zz'; the names of its values are: hidden"):
        call("zz")
    message = "policy: the name 'hiden' matches no value of the step; similar names are: hidden$"
    with pytest.warns(match=message) as caught:
        call("hidden", "hiden")
    kinds = [warning.category for warning in caught if warning.category is not recompute.jax.BarriersDropped]
    assert kinds == [recompute.jax.UnmatchedName]
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.UnmatchedName)
        call("hidden")


def without_scopes(w: Any, x: Any) -> Any:
    """Call only functions of JAX: `_bernoulli`, `_where`, `relu`, `_threefry_fold_in`."""
    for index, layer in enumerate(w):
        kept = jax.random.bernoulli(jax.random.fold_in(jax.random.key(0), index), 0.9, x.shape)
        x = jax.nn.relu(x) + jnp.where(kept, jnp.tanh(x @ layer["up"]) @ layer["down"], 0)
    return jnp.mean(x**2)


@pytest.mark.parametrize("options", [{"segments": "block*"}, {"segment_budgets": {"block*": "50%"}}])
@pytest.mark.parametrize("budget", [{}, {"budget": "66KiB"}])
def test_segments_of_a_model_without_scopes_name_the_remedy(
    options: dict[str, Any], budget: dict[str, Any], compiled: list[bool]
):
    """Nothing is compiled before the error, which lists no functions of JAX."""
    step = recompute.jax.jit(jax.value_and_grad(without_scopes), **options, **budget)
    with pytest.raises(ValueError, match=r"no segment matches 'block\*': the step contains no named scopes; in JAX, "):
        step(weights(), batch())
    assert compiled == []


def test_jitted_functions_of_the_model_are_suggested():
    @jax.jit
    def layer(w: Any, x: Any) -> Any:
        return jax.nn.relu(x) + jnp.tanh(x @ w["up"]) @ w["down"]

    def loss(w: Any, x: Any) -> Any:
        for parameters in w:
            x = layer(parameters, x)
        return jnp.mean(x**2)

    step = recompute.jax.jit(jax.value_and_grad(loss), segments="bloc")
    with pytest.raises(ValueError, match=r"no segment matches 'bloc'; the scopes are: layer$"):
        step(weights(), batch())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoints": ["zzz"]}, "name values of the forward pass"),
        ({"segments": "blok0"}, "similar segments are: block0"),
    ],
)
def test_options_are_checked_before_the_plain_step_is_compiled(options: Any, message: str, compiled: list[bool]):
    with pytest.raises(ValueError, match=message):
        recompute.jax.jit(mlp().step, budget="66KiB", **options)(weights(), batch())
    assert compiled == []
