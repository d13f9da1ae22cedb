"""Budgets per segment with the real compiler, and the errors on invalid ones."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import pytest

import recompute
from recompute.examples.models.chain import build as build_chain
from recompute.frontends.jax.messages.call_site_warnings import NothingSaved
from recompute.test.unit.frontends.jax.five_layers import STEP, five_layers
from recompute.test.unit.frontends.jax.steps import far_apart
from recompute.test.unit.transforms.segment_meter import saved_by_scope
from recompute.transforms.preparation.timelines import flat_copy


def test_segment_budgets_are_kept(plain: Any) -> None:
    """Independent code finds the budgets of segments kept, and the plain step is not chosen instead."""
    lowered = recompute.jax.jit(STEP, segment_budgets={"block*": 0.6}).lower(*five_layers())
    result, scopes = lowered.rewritten, [f"block{number}" for number in range(5)]
    assert result is not None and result.proof is not None and result.proof.proved and lowered.module is not None
    before, after = (saved_by_scope(flat_copy(item), scopes) for item in (lowered.module, result.module))
    assert all(0 < after[scope] <= 0.6 * before[scope] for scope in scopes)
    step = recompute.jax.jit(STEP, segment_budgets={"block*": 0.6})
    assert step.report(*five_layers()).why is None
    assert far_apart(step(*five_layers()), plain(*five_layers())) == []


def test_segment_budgets_that_raise_the_peak_are_warned_of() -> None:
    """The copies are made, since the user demands them, but the warning states the peaks and a remedy."""
    chain = build_chain("small")
    step = recompute.jax.jit(chain.function, segment_budgets={"*": 0.7})
    expected = (
        r"the copies for segment_budgets raise the peak from 4\.8 KiB \(4864 bytes\) to 5\.0 KiB \(5120 bytes\) "
        r"under the XLA:CPU model: .*; raise these budgets, or give the step a budget instead"
    )
    with pytest.warns(NothingSaved, match=expected):
        assert step.lower(*chain.arguments).rewritten is not None


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"segment_budgets": ["layer"]}, TypeError),
        ({"segment_budgets": {"layer": True}}, TypeError),
        ({"segment_budgets": {"layer": "30 apples"}}, ValueError),
        ({"segment_budgets": {"layer": "30%"}, "search": 2}, ValueError),
        ({"segment_budgets": {"layer": "30%"}, "planner": len}, ValueError),
    ],
)
def test_bad_segment_budget_is_rejected(wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="segment"):
        recompute.jax.jit(STEP, **wrong)


def test_errors_name_the_limit_that_has_a_wrong_type() -> None:
    list_as_limit: Any = {"layer*": [1]}
    number_as_pattern: Any = {3: "30%"}
    expected = r"segment_budgets: the limit of 'layer\*' must be a str, a share \(float\) or bytes \(int\), not list"
    with pytest.raises(TypeError, match=expected):
        recompute.jax.jit(STEP, segment_budgets=list_as_limit)
    with pytest.raises(TypeError, match=r"a key must be a str \(a pattern of segment names\), not int"):
        recompute.jax.jit(STEP, segment_budgets=number_as_pattern)
