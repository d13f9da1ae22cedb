"""Peaks of emitted steps: what is taken from the forecast, and what is computed anew."""

from __future__ import annotations

import pytest

from recompute.analysis.forecasts.peaks import Peaks
from recompute.analysis.step.module_steps import numbered_steps
from recompute.options.selection import AUTO
from recompute.rewriting.carry_out import CarriedOut
from recompute.search.choice.attempts import DEFAULT_ATTEMPT
from recompute.search.choice.planned_attempts import AttemptTargets, plan_attempt
from recompute.test.examples import inlined, peaks_before
from recompute.transforms.plans.cloned_steps import ClonedStep

NAME = "mlp.small.mlir"
FORECAST = 7


@pytest.mark.parametrize(
    ("in_order", "eager", "is_forecast"),
    [(0, 0, True), (1000, 1000, True), (-1, 0, False), (0, -1, False)],
    ids=["as forecast", "less", "more in program order", "more in the eager order"],
)
def test_xla_peak_is_forecast_unless_other_peaks_exceed(in_order: int, eager: int, is_forecast: bool) -> None:
    ((function, step),) = steps = numbered_steps(inlined(NAME).clone())
    plan = plan_attempt(step, AUTO, DEFAULT_ATTEMPT, AttemptTargets.of(step, AUTO)).plan
    name, before = function.sym_name.data, peaks_before(NAME)
    forecast = Peaks.from_values(before.in_order + in_order, before.eager + eager, lambda: FORECAST)
    carried_out = CarriedOut((ClonedStep(name, step.graph, plan, ()),), (), forecasts={name: forecast})
    (after,) = carried_out.emitted_peaks(steps).values()
    assert (after.in_order, after.eager) == (before.in_order, before.eager)
    assert after.xla == (FORECAST if is_forecast else before.xla)


def test_without_a_forecast_xla_is_computed() -> None:
    ((function, step),) = steps = numbered_steps(inlined(NAME).clone())
    plan = plan_attempt(step, AUTO, DEFAULT_ATTEMPT, AttemptTargets.of(step, AUTO)).plan
    carried_out = CarriedOut((ClonedStep(function.sym_name.data, step.graph, plan, ()),), ())
    (after,) = carried_out.emitted_peaks(steps).values()
    assert after.xla == peaks_before(NAME).xla
