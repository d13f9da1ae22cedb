"""Meet a budget in program order: try the loop schedules, each with the plans of the solvers (`solver_rounds.py`).

The choice that is made without a budget is used if it is within the budget and cheaper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from ...options.loop_schedule import LoopSchedule
from ...planning.graph import Graph
from ...planning.plan import Plan
from ...planning.plan_file import StepPlan
from ...support.diagnostics import Refusal
from ...support.units import readable_bytes
from ...transforms.rolled.joined_branches import has_several_conditionals
from ..beside_segments import SegmentLimitsByGraph
from ..loop_choices import loop_choices
from ..outcome import RewriteResult
from .budget_problem import BudgetProblem
from .preferred_result import preferred_result
from .solver_rounds import SolverRounds
from .surroundings import Surroundings


def search_in_program_order(problem: BudgetProblem) -> RewriteResult:
    """Find the cheapest rewrite whose peak in program order is within the budget. Raises `Refusal`, which states the
    proven minimum of the peak, if there is none."""
    return _OrderSearch(problem).best()


class _Skipped(Enum):
    """The reason that the search skips a loop schedule."""

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
        # A single step leads to the same graph with each schedule.
        for loops in choices[:1] if self.problem.is_single_step else choices:
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
        return preferred_result(self.problem, self.results)

    def _scope_of_bound(self, choices: Sequence[LoopSchedule]) -> str:
        """Return the end of a refusal. It states the loop schedule and the treatment of conditionals for which the
        lower bound is proved; "" if the bound has no such restriction."""
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
            return self._best_result(Surroundings.of_single(self.problem.limits.plain_bytes), loops, segments)
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
        surroundings = Surroundings.of(loops_alone.outcome, self.problem.live_peaks(loops_alone), graphs)
        return self._best_result(surroundings, loops, segments)

    def _best_result(
        self, surroundings: Surroundings, loops: LoopSchedule, segments: SegmentLimitsByGraph
    ) -> RewriteResult:
        """Return the better of two results: one from a solver's plan, and one from the choice that is made without a
        budget. Raises `Refusal` if neither is within the budget."""
        candidates, refused = list[RewriteResult](), None
        try:
            candidates.append(SolverRounds(self.problem, loops, surroundings, segments).best())
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
        return preferred_result(self.problem, candidates)


def _is_near_optimal(plans: Sequence[StepPlan]) -> bool:
    """Return whether these plans are close enough to the lower bounds on their cost to end the search."""
    from ...planning.solvers.effort import OPEN_GAP

    proofs = [plan.plan.optimality for plan in plans]
    return all(optimality is not None and optimality.gap <= OPEN_GAP for optimality in proofs)
