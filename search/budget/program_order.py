"""Keep a budget in program order: apply a plan of the solvers, measure the result, and retry with a lower limit.

A retry is needed if the CSE after copying extends live ranges beyond the plan. The choice without a budget is taken if
it fits and is cheaper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic

from ...options.loop_schedule import LoopSchedule
from ...planning.graph import Graph
from ...planning.plan import Plan
from ...planning.plan_file import StepPlan
from ...support.diagnostics import Refusal
from ...support.units import readable_bytes
from .beside_segments import BesideSegments
from .budget_problem import BudgetProblem, Evaluated, O, RewriteResult
from .loop_choices import loop_choices

MAX_RETRIES, SMALL_STEPS = 8, 4
"""Maximum number of tries, and the number of first tries that lower the limit by only half of the excess of an eager
executor: a plan that avoids all of it may cost far more."""


def in_program_order(problem: BudgetProblem[O]) -> Evaluated[O]:
    """Find the cheapest rewrite within the budget in program order. Raises `Refusal`, with the proven minimum."""
    return _InOrder(problem).best()


@dataclass(frozen=True)
class _InOrder(Generic[O]):
    problem: BudgetProblem[O]

    def best(self) -> Evaluated[O]:
        """Try the loop schedules in order of increasing work, until the loop cuts alone have the cost of a result.

        Raises `Refusal`.
        """
        results, refused, seen = list[Evaluated[O]](), None, set[frozenset[str]]()
        choices = loop_choices(self.problem.module, self.problem.options)
        for loops in choices:
            if results and self.problem.stop():
                break
            seen_before = len(seen)
            try:
                result = self._with_loops(loops, results, seen)
            except Refusal as error:
                refused = error
                continue
            if result is None and len(seen) == seen_before:
                continue
            if result is None:
                break
            results.append(result)
        if refused is not None and not results:
            hint = f"; that is with {choices[-1].pass_option}, more is kept otherwise" if len(choices) > 2 else ""
            raise Refusal(refused.operation, f"{refused.reason}{hint}") from refused
        return min(results, key=self._order_of)

    def _order_of(self, result: Evaluated[O]) -> tuple[float, float, int]:
        """Return the sort key of a result: whether the peak of an eager executor exceeds the budget, the peak (only
        for the budget `min`), and the extra cost."""
        least = self.problem.limits.share(result.peaks) if self.problem.limits.bytes is None else 0.0
        return self.problem.eager_excess(result) > 0, least, result.outcome.extra_cost

    def _with_loops(
        self, loops: LoopSchedule, results: Sequence[Evaluated[O]], seen: set[frozenset[str]]
    ) -> Evaluated[O] | None:
        """Find the best result with a loop schedule.

        Args:
            results: The results with other schedules.
            seen: The fingerprints of the graphs that other schedules led to; extended.

        Returns:
            The result; None if the loop cuts alone cost at least as much as one of the `results`, or if the schedule
            leads to the same graphs as another one.

        Raises:
            Refusal: If no plan keeps the budget.
        """
        segments = BesideSegments.of(self.problem.module, replace(self.problem.options, loops=loops))
        if self.problem.is_single_step:
            if seen:
                return None
            seen.add(frozenset())
            return self._best_of(_Around.of_single(self.problem.limits.plain), loops, segments)
        graphs = dict[str, Graph]()

        def record_and_plan(graph: Graph) -> Plan:
            graphs[graph.fingerprint] = graph
            return segments.least(graph)

        plain = self.problem.evaluate(record_and_plan, loops)
        if frozenset(graphs) in seen:
            return None
        seen.add(frozenset(graphs))
        kept = [result.outcome.extra_cost for result in results if self.problem.eager_excess(result) <= 0]
        if self.problem.limits.bytes is not None and kept and plain.outcome.extra_cost >= min(kept):
            return None
        if self.problem.is_kept(plain):
            return plain
        return self._best_of(_Around.of(plain.outcome, self.problem.living(plain), graphs), loops, segments)

    def _best_of(self, around: _Around, loops: LoopSchedule, segments: BesideSegments) -> Evaluated[O]:
        """Return the better one of the plan of the solvers and the choice without a budget. Raises `Refusal`."""
        candidates, refused = list[Evaluated[O]](), None
        try:
            candidates.append(self._planned(around, loops, segments))
        except Refusal as error:
            refused = error
        if candidates and _is_near_optimal(candidates[0].outcome.plans):
            return candidates[0]
        ordinary = self.problem.evaluate(None, loops)
        if ordinary.outcome.copies and self.problem.is_kept(ordinary):
            candidates.append(ordinary)
        if not candidates:
            assert refused is not None, "without candidates the planning failed"
            raise refused
        return min(candidates, key=self._order_of)

    def _planned(self, around: _Around, loops: LoopSchedule, segments: BesideSegments) -> Evaluated[O]:
        """Plan, rewrite and measure until the budget is kept. If the peak of an eager executor exceeds it, chain the
        copy groups first, then lower the limit."""
        from ...planning.solvers.result import NoPlan
        from ...planning.solvers.solve_graph import bytes_within, plan_within

        less, chain, kept, over = 0, False, list[tuple[int, Evaluated[O]]](), 0
        for rounds in range(MAX_RETRIES):

            def planner(graph: Graph, less: int = less, chain: bool = chain) -> Plan:
                limit, besides = around.limit_of(graph, self.problem.limits.bytes)
                if limit is not None and limit <= 0:
                    around_it = f"the operations around the block alone need {readable_bytes(besides)}"
                    raise NoPlan(f"no plan keeps the budget {self.problem.wording}: {around_it}")
                most = bytes_within(graph, "min") if limit is None else limit - less
                try:
                    return segments.plan(
                        graph,
                        partial(plan_within, budget=most, chain=chain, stop=self.problem.stop, live_sets=True),
                        chain,
                    )
                except NoPlan as error:
                    raise NoPlan(f"{error}{_beside(besides)}") from error

            try:
                result = self.problem.evaluate(planner, loops)
            except Refusal:
                if not kept:
                    raise
                break
            over, early = self.problem.limits.over(result.peaks), self.problem.eager_excess(result)
            if over <= 0 and early <= 0:
                return result
            if over <= 0:
                kept.append((early, result))
            if chain or over > 0:
                less += max(over, early // 2 if rounds < SMALL_STEPS else early)
            chain = chain or early > 0
        if kept:
            return min(kept, key=lambda kept_result: kept_result[0])[1]
        raise Refusal(
            self.problem.place,
            f"no plan keeps the budget {self.problem.wording} as it is written: "
            f"the last is {readable_bytes(over)} above",
        )


def _is_near_optimal(plans: Sequence[StepPlan]) -> bool:
    """Return whether no plan within the budget is cheaper than these by a share that is worth a search."""
    from ...planning.solvers.effort import OPEN_GAP

    known = [plan.plan.optimality for plan in plans]
    return all(optimality is not None and optimality.gap <= OPEN_GAP for optimality in known)


@dataclass(frozen=True)
class _Around:
    """For each graph the public function that contains the step, and the bytes that this function needs around the
    step, which is outlined if it is inside a loop.

    single: the function and its peak, if the module is a single step (`BudgetProblem.is_single_step`).
    """

    of_graph: Mapping[str, tuple[str, int]]
    single: tuple[str, int] | None = None

    @classmethod
    def of_single(cls, peaks: Mapping[str, int]) -> _Around:
        """Take the only function of the module, with its peak."""
        (single,) = peaks.items()
        return cls({}, single)

    @classmethod
    def of(cls, outcome: RewriteResult, peaks: Mapping[str, int], graphs: Mapping[str, Graph]) -> _Around:
        """Compute the bytes around each step.

        Args:
            outcome: The outcome of a rewrite, which names the steps and the functions that contain them.
            peaks: The peaks of the functions before anything is copied, without dead code.
            graphs: The graphs of the steps, by fingerprint.
        """
        from ...planning.liveness import peak_bytes

        around = dict[str, tuple[str, int]]()
        for plan in outcome.plans:
            if (graph := graphs.get(plan.graph)) is not None:
                function = outcome.containing.get(plan.function, plan.function)
                around[plan.graph] = function, max(0, peaks[function] - peak_bytes(graph))
        return cls(around)

    def limit_of(self, graph: Graph, limits: Mapping[str, int] | None) -> tuple[int | None, int]:
        """Return the limit of the step in bytes (None for `min`), and the bytes around the step."""
        from ...planning.liveness import peak_bytes

        if self.single is not None:
            function, peak = self.single
            besides = max(0, peak - peak_bytes(graph))
        else:
            function, besides = self.of_graph[graph.fingerprint]
        return None if limits is None else limits[function] - besides, besides


def _beside(besides: int) -> str:
    """Return the end of a refusal for a step inside a larger function, which needs `besides` bytes around it."""
    return f", and {readable_bytes(besides)} around the block" if besides else ""
