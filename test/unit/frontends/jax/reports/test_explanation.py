"""The contents of `.explain()` agree with those of `.report()` and with the rewrite of the module."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import pytest

import recompute
from recompute.support.units import format_bytes
from recompute.test.unit.frontends.jax.steps import batch, forward, jax, mlp, weights


def test_explanation_agrees_with_the_module_rewrite():
    step = recompute.jax.jit(mlp().step, segments="block[01]")
    (result,) = step.explain(weights(), batch())
    (expected,) = recompute.explain(
        jax.jit(mlp().step).lower(weights(), batch()).as_text(debug_info=True),
        recompute.Selection(segments="block[01]"),
    )
    assert result.segments and result.saved_bytes == expected.saved_bytes
    assert [row.segment for row in result.segments] == [row.segment for row in expected.segments]
    assert {row.segment for row in result.segments if row.segment} == {"block0", "block1"}
    with pytest.raises(recompute.Refusal, match="loss computes no gradient"):
        recompute.jax.jit(forward()).explain(weights(), batch())


def test_explanation_has_a_summary():
    (explanation,) = result = recompute.jax.jit(mlp().step).explain(weights(12), batch())
    lines = str(result).splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 100
    worth = [row for row in explanation.segments if row.reason is None]
    assert explanation.measured_bytes is not None
    plain = f"step: {format_bytes(explanation.measured_bytes)} of temporaries"
    assert lines[0].startswith(f"{plain}; {len(worth)} of 12 segments are worth recomputing: they free ")
    assert "  and 4 more segments" in lines
    assert result.details().startswith("function @step")


def test_report_and_explain_agree_on_plain_bytes():
    """Both compile the plain step only once, in either order, and name the step as the user does."""
    step = recompute.jax.jit(mlp().step)
    explained = str(step.explain(weights(), batch())).splitlines()
    reported = step.report(weights(), batch())
    assert reported.plain.temporaries is not None
    size = format_bytes(reported.plain.temporaries)
    assert str(reported).startswith(f"step: {size} -> ") and explained[0].startswith(f"step: {size} of temporaries; ")
    assert f"  its peak of temporaries: {size} as compiled, as in reports; " in "\n".join(explained)
    assert str(step.explain(weights(), batch())).splitlines() == explained
