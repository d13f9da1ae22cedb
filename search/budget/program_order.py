"""Meet a budget in program order: apply a plan of the solvers, measure the result, and retry with a lower limit if
necessary.

A retry is necessary if the CSE after copying extends live ranges beyond the plan. The choice that is made without a
budget is used if it is within the budget and cheaper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial

from ...options.loop_schedule import LoopSchedule
from ...planning.graph import Graph
from ...planning.plan import Plan
from ...planning.plan_file import StepPlan
from ...planning.solvers.result import NameOfOperation, NoPlan
from ...support.diagnostics import Refusal
from ...support.units import readable_bytes
from ...transforms.rolled.joined_branches import has_several_conditionals
from ..beside_segments import SegmentLimitsByGraph
from ..loop_choices import loop_choices
from ..outcome import Recomputation, RewriteResult
from .budget_problem import BudgetProblem

MAX_ROUNDS, SMALL_STEPS = 8, 4
"""Maximum number of rounds; and number of initial rounds that lower the limit by only half of the excess of an eager
executor, because a plan that avoids the whole excess may cost far more."""
MAX_EAGER_COST = 0.10
"""Maximum extra cost, as a share of the cost of the plain step, of a plan whose peak is also low on an eager executor,
compared with the cheapest plan within the budget in program order."""
MAX_LOWERED = 2
"""Maximum number of further plans for the budget `min`, if the rewritten program needs more memory than its plan."""


def search_in_program_order(problem: BudgetProblem) -> RewriteResult:
    """Find the cheapest rewrite within the budget in program order. Raises `Refusal`, with the proven minimum, if there
    is none."""
    return _OrderSearch(problem).best()


class _Skipped(Enum):
    """The reason why the search skips a loop schedule."""

    SAME_GRAPHS = "it leads to the same graphs as another schedule"
    TOO_MUCH_WORK = "its loop cuts alone cost at least as much as a result with another schedule"


@dataclass
class _OrderSearch:
    """The search for the cheapest result in program order, over all loop schedules.

    Attributes:
        problem: The problem.
        results: The results for the loop schedules that have been tried.
        seen: The fingerprints of the graphs that result from these schedules.
    """

    problem: BudgetProblem
    results: list[RewriteResult] = field(default_factory=list[RewriteResult])
    seen: set[frozenset[str]] = field(default_factory=set[frozenset[str]])

    def best(self) -> RewriteResult:
        """Try the loop schedules in order of increasing work, until the loop cuts alone cost at least as much as an
        earlier result.

        Raises:
            Refusal: If no result is within the budget.
        """
        refused = None
        choices = loop_choices(self.problem.module, self.problem.options)
        for loops in choices:
            if self.results and self.problem.stop():
                break
            try:
                result = self._with_loops(loops)
            except Refusal as error:
                refused = error
                continue
            if result is _Skipped.TOO_MUCH_WORK:
                break
            if isinstance(result, RewriteResult):
                self.results.append(result)
        if refused is not None and not self.results:
            raise Refusal(refused.operation, f"{refused.reason}{self._scope_of_bound(choices)}") from refused
        return _preferred(self.problem, self.results)

    def _scope_of_bound(self, choices: Sequence[LoopSchedule]) -> str:
        """Return the end of a refusal, which restricts its bound to a loop schedule and to undivided conditionals."""
        scope = ""
        if len(choices) > 2:
            scope += f"; this bound is for {choices[-1].pass_option}, and the other loop schedules need more memory"
        if has_several_conditionals(self.problem.module):
            scope += "; this bound is for conditionals that are copied as a whole"
            ordinary = self.problem.evaluate(None)
            if ordinary.outcome.copies:
                needed = ", ".join(map(readable_bytes, ordinary.peaks.values()))
                scope += f", and the choice without a budget, which may divide them, needs {needed}"
        return scope

    def _with_loops(self, loops: LoopSchedule) -> RewriteResult | _Skipped:
        """Find the best result with a loop schedule, or return the reason to skip it. Raises `Refusal` if no plan is
        within the budget."""
        segments = SegmentLimitsByGraph.of(self.problem.module, replace(self.problem.options, loops=loops))
        if self.problem.is_single_step:
            if self.seen:
                return _Skipped.SAME_GRAPHS
            self.seen.add(frozenset())
            return self._best_result(_Surroundings.of_single(self.problem.limits.plain_bytes), loops, segments)
        graphs = dict[str, Graph]()

        def record_and_plan(graph: Graph) -> Plan:
            graphs[graph.fingerprint] = graph
            return segments.required_plan(graph)

        loops_alone = self.problem.evaluate(record_and_plan, loops)
        if frozenset(graphs) in self.seen:
            return _Skipped.SAME_GRAPHS
        self.seen.add(frozenset(graphs))
        costs = [result.outcome.extra_cost for result in self.results if self.problem.eager_excess(result) <= 0]
        if self.problem.limits.limit_bytes is not None and costs and loops_alone.outcome.extra_cost >= min(costs):
            return _Skipped.TOO_MUCH_WORK
        if self.problem.is_within_budget(loops_alone):
            return loops_alone
        surroundings = _Surroundings.of(loops_alone.outcome, self.problem.live_peaks(loops_alone), graphs)
        return self._best_result(surroundings, loops, segments)

    def _best_result(
        self, surroundings: _Surroundings, loops: LoopSchedule, segments: SegmentLimitsByGraph
    ) -> RewriteResult:
        """Return the better of two results: one from a solver's plan, and one from the choice that is made without a
        budget. Raises `Refusal` if neither is within the budget."""
        candidates, refused = list[RewriteResult](), None
        try:
            candidates.append(_SolverRounds(self.problem, loops, surroundings, segments).best())
        except Refusal as error:
            refused = error
        is_least = self.problem.limits.limit_bytes is None
        if candidates and not is_least and _is_near_optimal(candidates[0].outcome.plans):
            return candidates[0]
        if candidates and candidates[0].outcome.copies and self.problem.stop():
            return candidates[0]
        ordinary = self.problem.evaluate(None, loops)
        if ordinary.outcome.copies and (is_least or self.problem.is_within_budget(ordinary)):
            candidates.append(ordinary)
        if not candidates:
            assert refused is not None, "without candidates the planning failed"
            raise refused
        return _preferred(self.problem, candidates)


@dataclass
class _SolverRounds:
    """A loop that rewrites a module according to the solvers' plans, and replans while the result exceeds the budget.

    If the peak of an eager executor exceeds the budget, copy groups are chained first, and then the limit is lowered,
    until the plans cost too much.

    Attributes:
        problem, loops: The problem and the loop schedule.
        surroundings: The bytes that functions need outside each step.
        segments: The limits of segments with budgets.
        limit_bytes: The limits of the functions; None for the lowest peak.
        reduction_bytes: The bytes by which the limits are lowered.
        chain: Whether copy groups are chained.
        planned_bytes: For each function, the largest peak that the last plans of its steps have.
        kept: The results whose peak in program order is within the budget.
    """

    problem: BudgetProblem
    loops: LoopSchedule
    surroundings: _Surroundings
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

        If CSE extends live ranges, the rewritten program needs more memory than its plan. In this case, plans with
        fewer copies are also tried, with limits just below the memory of the best result.
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
                if early <= 0 or not _is_affordable(result, self.kept):
                    break
            self._tighten(over, early, is_first=number < SMALL_STEPS)
        if self.kept:
            return _preferred(self.problem, self.kept)
        raise Refusal(
            self.problem.report_location,
            f"no plan is within the budget {self.problem.refused_wording}: "
            f"the rewritten program of the last plan exceeds it by {readable_bytes(over)}",
        )

    def _tighten(self, over: int, early: int, is_first: bool) -> None:
        """Chain copy groups, or lower the limit. `over`: the bytes by which the result exceeds the budget in program
        order. `early`: the excess under an eager executor."""
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
        """Return the reason why a step has no plan, with the bytes `around` it."""
        besides = f"; the operations outside the block need a further {readable_bytes(around)}" if around else ""
        return f"{error.reason(name)}{besides}; {self.problem.counted_values}"


def _preferred(problem: BudgetProblem, results: Sequence[RewriteResult]) -> RewriteResult:
    """Return the preferred result among several that are within the budget.

    For the budget `min`, this is the result with the lowest peak, and then the cheapest one. Otherwise it is the
    cheapest result whose peak under an eager executor is also low, if it costs little more than the cheapest result
    overall.
    """
    if problem.limits.limit_bytes is None:
        return min(results, key=lambda result: (problem.limits.largest_ratio(result.peaks), result.outcome.extra_cost))
    low = [result for result in results if problem.eager_excess(result) <= 0 and _is_affordable(result, results)]
    return min(low or results, key=lambda result: result.outcome.extra_cost)


def _is_affordable(result: RewriteResult, results: Sequence[RewriteResult]) -> bool:
    """Return whether a result costs so little more than the cheapest result that it may be preferred for its eager
    peak."""
    cheapest = min(results, key=lambda other: other.outcome.extra_cost).outcome
    return result.outcome.extra_cost <= cheapest.extra_cost + MAX_EAGER_COST * result.outcome.plain_cost


def _is_near_optimal(plans: Sequence[StepPlan]) -> bool:
    """Return whether these plans are close enough to the lower bounds on their cost to end the search."""
    from ...planning.solvers.effort import OPEN_GAP

    proofs = [plan.plan.optimality for plan in plans]
    return all(optimality is not None and optimality.gap <= OPEN_GAP for optimality in proofs)


@dataclass(frozen=True)
class _Surroundings:
    """The public functions around the steps, and the bytes that these functions need outside the steps.

    Attributes:
        of_graph: For each step, by its graph's fingerprint: the function around it, and the bytes that this function
            needs outside the step. A step inside a loop is outlined.
        single: The function and its peak, if the module is a single step (`BudgetProblem.is_single_step`).
    """

    of_graph: Mapping[str, tuple[str, int]]
    single: tuple[str, int] | None = None

    @classmethod
    def of_single(cls, peaks: Mapping[str, int]) -> _Surroundings:
        """Return the surroundings in a module that is a single step. `peaks`: the peak of its only function."""
        (single,) = peaks.items()
        return cls({}, single)

    @classmethod
    def of(cls, outcome: Recomputation, peaks: Mapping[str, int], graphs: Mapping[str, Graph]) -> _Surroundings:
        """Compute the bytes that functions need outside each step.

        Args:
            outcome: The outcome of a rewrite. It names the steps and the functions that contain them.
            peaks: The peaks of the functions before anything is copied, without dead code.
            graphs: The graphs of the steps, by fingerprint.
        """
        from ...planning.liveness import peak_bytes

        of_graph = dict[str, tuple[str, int]]()
        for plan in outcome.plans:
            if (graph := graphs.get(plan.graph)) is not None:
                function = outcome.containing_functions.get(plan.function, plan.function)
                of_graph[plan.graph] = function, max(0, peaks[function] - peak_bytes(graph))
        return cls(of_graph)

    def around(self, graph: Graph) -> tuple[str, int]:
        """Return the function around the step, and the bytes that it needs outside the step."""
        from ...planning.liveness import peak_bytes

        if self.single is None:
            return self.of_graph[graph.fingerprint]
        function, peak = self.single
        return function, max(0, peak - peak_bytes(graph))
