"""Rewrites with given peaks and work, for tests of searches within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.step.module_steps import numbered_steps
from recompute.options.loop_schedule import UNCUT, LoopSchedule
from recompute.options.recompute_options import DEFAULT_OPTIONS, Planner, RecomputeOptions
from recompute.planning.plan import Optimality, Plan
from recompute.planning.plan_file import StepPlan
from recompute.planning.solvers.result import Stop, never_stop
from recompute.search.budget.budget_problem import BudgetProblem
from recompute.search.limits import Budget, budget_limits
from recompute.search.outcome import Recomputation, RewriteResult
from recompute.support.diagnostics import Refusal
from recompute.test.sine_chain import VALUE_BYTES, sine_chain
from recompute.transforms.plans.cloned_steps import ClonedStep
from recompute.transforms.rolled.rewrite_loops import LoopRecomputation


def step_of(values: int) -> ModuleOp:
    """Return a step whose peak in program order is `values` values of `VALUE_BYTES`."""
    return sine_chain(values - 1)


def rewrite_of(
    values: int, flops: int = 0, copies: int = 1, eager_values: int = 0, optimality: Optimality | None = None
) -> RewriteResult:
    """Return a rewrite whose peak in program order is `values` values.

    Args:
        values: The peak.
        flops: The extra FLOPs, which are also the extra cost.
        copies: The number of copies.
        eager_values: The peak of an eager executor.
        optimality: The distance of the plan to the cheapest one, if it is known.
    """
    module = step_of(values)
    ((_, step),) = numbered_steps(module)
    outcome = Recomputation(
        (ClonedStep("step", step.graph, Plan(optimality=optimality), ()),),
        (),
        in_loops=LoopRecomputation(copies, flops, ()),
        eager_peak_bytes=eager_values * VALUE_BYTES,
    )
    return RewriteResult(module, outcome, UNCUT, {"step": values * VALUE_BYTES})


Planned = Sequence[StepPlan] | Planner | None


@dataclass
class GivenRewrites:
    """Stands for the function that rewrites a module. It returns the given results in this order; None stands for a
    refusal.

    Attributes:
        results: The results that are left.
        calls: The arguments of each call.
    """

    results: list[RewriteResult | None]
    calls: list[tuple[Planned, LoopSchedule]] = field(default_factory=list[tuple[Planned, LoopSchedule]])

    def __call__(self, planned: Planned, loops: LoopSchedule) -> RewriteResult:
        self.calls.append((planned, loops))
        result = self.results.pop(0)
        if result is None:
            raise Refusal(step_of(3), "the plan does not apply")
        return replace(result, loops=loops)


def problem_of(
    run: GivenRewrites,
    budget: str,
    values: int = 20,
    options: RecomputeOptions = DEFAULT_OPTIONS,
    model: str = "order",
    stop: Stop = never_stop,
) -> BudgetProblem:
    """Return the problem to rewrite a step within a budget. `values`: the peak of the step."""
    module, stated = step_of(values), Budget(budget, model)
    limits = budget_limits(module, stated)
    return BudgetProblem(module=module, budget=stated, run=run, limits=limits, options=options, stop=stop)
