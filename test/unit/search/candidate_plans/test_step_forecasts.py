"""Forecasts of the candidate plans of a step: one for each plan, and judgements without a forecast."""

from __future__ import annotations

from recompute.analysis.forecasts.peaks import Forecast, Peaks
from recompute.analysis.step.module_steps import numbered_steps
from recompute.options.recompute_options import DEFAULT_OPTIONS
from recompute.planning.calibrated_search import Prediction
from recompute.planning.plan import Plan
from recompute.planning.solvers.solve_graph import planner_within
from recompute.search.candidate_plans.plan_family import LESS_WORK_NEXT, UnscoredPlan
from recompute.search.candidate_plans.plan_origin import PlanOrigin, PlanSource
from recompute.search.candidate_plans.step_forecasts import StepForecasts
from recompute.test.examples import inlined


def need_of(prediction: Prediction) -> float:
    return prediction.need


def test_each_plan_is_forecast_once() -> None:
    ((function, step),) = numbered_steps(inlined("chain.small.mlir").clone())
    shares = list[float]()

    def share(peaks: Peaks) -> float:
        shares.append(peaks.in_order / peaks_before.in_order)
        return shares[-1]

    def unscored(plan: Plan) -> UnscoredPlan:
        return UnscoredPlan(PlanOrigin(PlanSource.SOLVER), plan, (), {})

    forecast = Forecast.of(function, step, DEFAULT_OPTIONS.emission)
    peaks_before = forecast.without_copies()
    forecasts = StepForecasts(step.graph, forecast, share, None)
    plan = planner_within("60%")(step.graph)
    candidate = forecasts.candidate_of(unscored(plan))
    assert candidate is not None and forecasts.candidates == [candidate] and candidate.need_share < 1
    assert forecasts.candidate_of(unscored(Plan(plan.groups, plan.kept))) is candidate
    assert forecasts.judge(need_of, unscored(plan)) == candidate.need_share
    assert forecasts.judge(need_of, unscored(plan), work_limit=candidate.work) == LESS_WORK_NEXT
    assert len(shares) == 1


def test_plans_that_are_no_candidates_lead_to_less_work() -> None:
    ((function, step),) = numbered_steps(inlined("chain.small.mlir").clone())
    forecast = Forecast.of(function, step, DEFAULT_OPTIONS.emission)
    forecasts = StepForecasts(step.graph, forecast, lambda _: 1.0, None)
    without_copies = UnscoredPlan(PlanOrigin(PlanSource.SOLVER), Plan(), (), {})
    assert forecasts.judge(need_of, without_copies) == forecasts.judge(need_of, None) == LESS_WORK_NEXT
    assert forecasts.candidates == [] and forecasts.least_fitting_work(need_of) is None
