"""Apply a plan of the solvers, measure the result in program order, and retry with a lower limit if necessary.

A retry is necessary if the CSE after copying extends live ranges beyond the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from ...options.loop_schedule import LoopSchedule
from ...planning.graph import Graph
from ...planning.plan import Plan
from ...planning.solvers.result import NameOfOperation, NoPlan
from ...support.diagnostics import Refusal
from ...support.units import readable_bytes
from ..beside_segments import SegmentLimitsByGraph
from ..outcome import RewriteResult
from .budget_problem import BudgetProblem
from .preferred_result import is_affordable, preferred_result
from .surroundings import Surroundings

MAX_ROUNDS, SMALL_STEPS = 8, 4
"""Maximum number of rounds; and number of initial rounds that lower the limit by only half of the excess of an eager
executor, because a plan that avoids the whole excess may cost far more."""
MAX_LOWERED = 2
"""Maximum number of further plans for the budget `min`, if the rewritten program needs more memory than its plan."""


@dataclass
class SolverRounds:
    """Rewrites a module according to the solvers' plans. While the result exceeds the budget, replans and rewrites
    again.

    If the peak of an eager executor exceeds the budget, copy groups are chained first, and then the limit is lowered,
    until the plans cost too much.

    Attributes:
        problem, loops: The problem and the loop schedule.
        surroundings: The bytes that functions need outside each step.
        segments: The limits of segments with budgets.
        limit_bytes: The limits of the functions; None for the lowest peak.
        reduction_bytes: The bytes by which the limits are lowered.
        chain: Whether copy groups are chained.
        planned_bytes: For each function, the largest peak among the latest plans of its steps.
        kept: The results within the budget in program order.
    """

    problem: BudgetProblem
    loops: LoopSchedule
    surroundings: Surroundings
    segments: SegmentLimitsByGraph
    limit_bytes: Mapping[str, int] | None = None
    reduction_bytes: int = 0
    chain: bool = False
    planned_bytes: dict[str, int] = field(default_factory=dict[str, int])
    kept: list[RewriteResult] = field(default_factory=list[RewriteResult])

    def best(self) -> RewriteResult:
        """Return the cheapest result within the budget, or the result with the lowest peak for the budget `min`. Raises
        `Refusal` if no result is within the budget."""
        self.limit_bytes = self.problem.limits.limit_bytes
        return self._lowest() if self.limit_bytes is None else self._within_budget()

    def _lowest(self) -> RewriteResult:
        """Rewrite according to the plans with the lowest peaks.

        If CSE extends live ranges, the rewritten program needs more memory than its plan. Plans with fewer copies are
        then tried, with limits just below the memory of the best result.
        """
        best = self.problem.evaluate(self._plan, self.loops)
        lowest_planned, largest_ratio = dict(self.planned_bytes), self.problem.limits.largest_ratio
        for _ in range(MAX_LOWERED):
            above = {name for name, peak in best.peaks.items() if peak > lowest_planned.get(name, peak)}
            if not above or self.problem.stop():
                break
            self.limit_bytes = {name: peak - (name in above) for name, peak in best.peaks.items()}
            try:
                result = self.problem.evaluate(self._plan, self.loops)
            except Refusal:
                break
            over = max(peak - self.limit_bytes[name] for name, peak in result.peaks.items())
            if largest_ratio(result.peaks) < largest_ratio(best.peaks):
                best, self.reduction_bytes = result, 0
            elif over <= 0:
                break
            else:
                self.reduction_bytes += over
        return best

    def _within_budget(self) -> RewriteResult:
        """Plan, rewrite and measure until a result is within the budget."""
        over = 0
        for number in range(MAX_ROUNDS):
            try:
                result = self.problem.evaluate(self._plan, self.loops)
            except Refusal:
                if not self.kept:
                    raise
                break
            over = self.problem.limits.excess_bytes(result.peaks)
            early = self.problem.eager_excess(result)
            if over <= 0:
                self.kept.append(result)
                if early <= 0 or not is_affordable(result, self.kept):
                    break
            self._tighten(over, early, is_first=number < SMALL_STEPS)
        if self.kept:
            return preferred_result(self.problem, self.kept)
        raise Refusal(
            self.problem.report_location,
            f"no plan is within the budget {self.problem.refused_wording}: "
            f"the rewritten program of the last plan exceeds it by {readable_bytes(over)}",
        )

    def _tighten(self, over: int, early: int, is_first: bool) -> None:
        """Chain copy groups, or lower the limit. `over`, `early`: the bytes by which the result exceeds the budget in
        program order, and under an eager executor."""
        if self.chain or over > 0:
            self.reduction_bytes += max(over, early // 2 if is_first else early)
        self.chain = self.chain or early > 0

    def _plan(self, graph: Graph) -> Plan:
        """Plan a step within its current limit. Raises `NoPlan` if no plan is found."""
        from ...planning.liveness import peak_bytes
        from ...planning.simulate import as_graph, simulate
        from ...planning.solvers.solve_graph import SearchOptions, plan_with_lowest_peak, plan_within

        function, around = self.surroundings.around(graph)
        limit = None if self.limit_bytes is None else self.limit_bytes[function] - around
        if limit is not None and limit <= 0:
            why = f"the operations outside the block alone need {readable_bytes(around)}"
            raise NoPlan(self.problem.refused_wording, lambda _: why)
        options = SearchOptions(stop=self.problem.stop, chain=self.chain)
        if limit is None:
            planner = partial(plan_with_lowest_peak, options=options)
        else:
            planner = partial(plan_within, budget=limit - self.reduction_bytes, options=options)
        try:
            plan = self.segments.plan(graph, planner, self.chain)
        except NoPlan as error:
            raise NoPlan(self.problem.refused_wording, partial(self._reason_of, error, around)) from error
        if self.problem.limits.limit_bytes is None:
            planned = around + peak_bytes(as_graph(graph, simulate(graph, plan, keeps_barriers=False)))
            self.planned_bytes[function] = max(planned, self.planned_bytes.get(function, 0))
        return plan

    def _reason_of(self, error: NoPlan, around: int, name: NameOfOperation | None) -> str:
        """Return the reason that a step has no plan. The reason includes the bytes `around` the step."""
        besides = f"; the operations outside the block need a further {readable_bytes(around)}" if around else ""
        return f"{error.reason(name)}{besides}; {self.problem.counted_values}"
