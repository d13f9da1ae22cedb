"""The values that a report lists as kept for the backward pass, and the reasons why they are kept."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import recompute
from recompute.analysis.explain.saved_values import PLAIN_STEP
from recompute.frontends.jax.compilation.variants import Variant
from recompute.reports.explain import to_summary
from recompute.support.units import format_bytes
from recompute.test.unit.frontends.jax.steps import batch, jax, jnp, mlp, weights


@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("options", [{"budget": "1GiB"}, {"budget": 1.0}, {"segments": "none"}, {}])
def test_a_plain_step_keeps_all_its_residuals(options: dict[str, Any], details: bool):
    """The report on a plain step lists the values that it saves, not those that a rewrite would leave."""
    step = recompute.jax.jit(mlp().step, **options)
    if options:
        report = step.report(weights(), batch())
    else:
        report = recompute.jax.explain(step, weights(), batch(), budget="200MiB")
    assert report.variant is Variant.PLAIN
    (explanation,) = step.explain(weights(), batch())
    assert sum(value.bytes for value in report.kept) == explanation.saved_bytes
    text = report.details() if details else str(report)
    assert f"kept for the backward pass: {format_bytes(explanation.saved_bytes)} of values before fusion" in text
    assert (PLAIN_STEP in " ".join(text.split())) == (options != {"segments": "none"})


@pytest.mark.parametrize(
    "options",
    [
        {"segment_budgets": {"block*": "50%"}},
        {"segments": "block*", "budget": 0.6},
        {"segments": "block*", "policy": "dots_saveable"},
        {"segments": "block[01]"},
    ],
    ids=str,
)
def test_kept_values_are_those_that_the_rewritten_step_saves(options: dict[str, Any]):
    """A budget, a segment budget or a policy keeps values inside of recomputed segments, and the list contains them."""
    step = recompute.jax.jit(mlp().step, **options)
    report, rewritten = step.report(weights(), batch()), step.lower(weights(), batch()).rewritten
    assert report.variant is Variant.RECOMPUTED and rewritten is not None
    saved_bytes = sum(value.bytes for value in rewritten.still_saved())
    assert sum(value.bytes for value in report.kept) == saved_bytes
    assert f"kept for the backward pass: {format_bytes(saved_bytes)} of values before fusion" in str(report)


def test_summary_lists_values_that_are_still_saved():
    lowered = recompute.jax.jit(mlp().step).lower(weights(), batch())
    assert lowered.rewritten is not None
    saved = lowered.rewritten.still_saved()
    starts = [value for value in saved if value.reason == "recomputation starts from it"]
    assert [value.type for value in starts] == ["f32[256,16]"] * len(starts) and starts
    assert {value.module for value in starts} <= {"block0", "block1", "block2"}
    assert [value.bytes for value in saved] == sorted((value.bytes for value in saved), reverse=True)


def test_reasons_explain_a_step_without_segments():
    report = recompute.jax.jit(mlp().step, segments="block0").report(weights(), batch())
    text = " ".join(str(report).split())
    assert "listed segments" not in text
    assert "it is outside every segment, and only values inside segments are recomputed" in text
    (explanation,) = recompute.jax.jit(forward_with_gradient, segments="none").explain(jnp.ones((8, 8)))
    assert {value.reason for value in explanation.values} == {
        "the step has no segments, the parts that are recomputed: name its parts as scopes"
    }


def forward_with_gradient(w: Any) -> Any:
    return jax.grad(lambda w: jnp.sum(jnp.sin(jnp.sin(w))))(w)


def test_reasons_are_wrapped_not_cut():
    report = recompute.jax.jit(mlp().step).report(weights(), batch())
    words = " ".join(f"word{number}" for number in range(40))
    longer = replace(
        report,
        stored=replace(report.stored, saved=(replace(report.kept[0], reason=words),)),
        search=replace(report.search, refused=words),
    )
    text = str(longer)
    assert " ".join(text.split()).count(words) == 2 and max(map(len, text.splitlines())) <= 100
    (explanation,) = recompute.jax.jit(mlp().step).explain(weights(), batch())
    (first, *others) = explanation.segments
    text = to_summary(replace(explanation, segments=(replace(first, reason=words), *others)))
    assert words in " ".join(text.split()) and max(map(len, text.splitlines())) <= 100 and "…" not in text
