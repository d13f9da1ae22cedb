"""A budget in program order: apply a plan of the solvers, measure the result, and retry with a lower budget.

The CSE after copying may extend live ranges beyond the plan. The choice without a budget is taken where it fits and is
cheaper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic

from ...options.loop_schedule import Loops
from ...planning.graph import Graph
from ...planning.plan import Plan
from ...planning.plan_file import StepPlan
from ...support.diagnostics import Refusal
from ...transforms.plans.nested_steps import function_around
from .beside_segments import BesideSegments
from .loop_choices import loop_choices, loops_option
from .written import Budgeted, O, Written

ROUNDS, SMALL_STEPS = 8, 4
"""Maximum number of retries, and how many of them lower the budget by half of the excess of an eager executor only,
because a plan that avoids all of it may cost far more."""


def in_program_order(one: Budgeted[O]) -> Written[O]:
    """Raises `Refusal`, with the proven minimum."""
    return _InOrder(one).best()


@dataclass(frozen=True)
class _InOrder(Generic[O]):
    one: Budgeted[O]

    def best(self) -> Written[O]:
        """Loops are cut as little as leaves a plan, and further while that may take less work. Raises `Refusal`."""
        found, refused, seen = list[Written[O]](), None, set[frozenset[str]]()
        choices = loop_choices(self.one.module, self.one.options)
        for loops in choices:
            if found and self.one.stop():
                break
            known = len(seen)
            try:
                done = self._with_loops(loops, found, seen)
            except Refusal as error:
                refused = error
                continue
            if done is None and len(seen) == known:
                continue
            if done is None:
                break
            found.append(done)
        if refused is not None and not found:
            how = f"; that is with {loops_option(choices[-1])}, more is kept otherwise" if len(choices) > 2 else ""
            raise Refusal(refused.operation, f"{refused.reason}{how}") from refused
        return min(found, key=self._order_of)

    def _order_of(self, one: Written[O]) -> tuple[float, float, int]:
        """The sort key: fits an eager executor, then the bytes for the budget `min`, then the work."""
        least = self.one.allowed.share(one.peaks) if self.one.allowed.wanted is None else 0.0
        return self.one.eager_excess(one) > 0, least, one.outcome.extra_cost

    def _with_loops(self, loops: Loops, found: Sequence[Written[O]], seen: set[frozenset[str]]) -> Written[O] | None:
        """None where the loops alone take more than what was `found`, or where the steps are those that were `seen`: no
        loop was cut. Raises `Refusal`."""
        graphs = dict[str, Graph]()
        segments = BesideSegments.of(self.one.module, replace(self.one.options, loops=loops))

        def look(graph: Graph) -> Plan:
            graphs[graph.fingerprint] = graph
            return segments.least(graph)

        plain = self.one.written(look, loops)
        if frozenset(graphs) in seen:
            return None
        seen.add(frozenset(graphs))
        kept = [one.outcome.extra_cost for one in found if self.one.eager_excess(one) <= 0]
        if self.one.allowed.wanted is not None and kept and plain.outcome.extra_cost >= min(kept):
            return None
        if self.one.is_kept(plain):
            return plain
        around = _Around.of(plain.outcome.plans, self.one.living(plain), graphs)
        done, refused = list[Written[O]](), None
        try:
            done.append(self._planned(around, loops, segments))
        except Refusal as error:
            refused = error
        ordinary = self.one.written(None, loops)
        if ordinary.outcome.copies and self.one.is_kept(ordinary):
            done.append(ordinary)
        if not done:
            assert refused is not None, "nothing was found"
            raise refused
        return min(done, key=self._order_of)

    def _planned(self, around: _Around, loops: Loops, segments: BesideSegments) -> Written[O]:
        """Where tokens are to hold for executors that start what they can, they are chained, then less is asked for."""
        from ...planning.solvers.of_graph import bytes_within, plan_within
        from ...planning.solvers.result import NoPlan

        less, chain, kept, over = 0, False, list[tuple[int, Written[O]]](), 0
        for rounds in range(ROUNDS):

            def planner(graph: Graph, less: int = less, chain: bool = chain) -> Plan:
                wanted, besides = around.wanted(graph, self.one.allowed.wanted)
                most = bytes_within(graph, "min") if wanted is None else wanted - less
                try:
                    return segments.plan(
                        graph, partial(plan_within, budget=most, chain=chain, stop=self.one.stop), chain
                    )
                except NoPlan as error:
                    raise NoPlan(f"{error}{f', and {besides} bytes around the block' if besides else ''}") from error

            try:
                done = self.one.written(planner, loops)
            except Refusal:
                if not kept:
                    raise
                break
            over, early = self.one.allowed.over(done.peaks), self.one.eager_excess(done)
            if over <= 0 and early <= 0:
                return done
            if over <= 0:
                kept.append((early, done))
            if chain or over > 0:
                less += max(over, early // 2 if rounds < SMALL_STEPS else early)
            chain = chain or early > 0
        if kept:
            return min(kept, key=lambda one: one[0])[1]
        raise Refusal(
            self.one.module,
            f"no plan keeps the budget {self.one.asked} as it is written: the last is {over} bytes above",
        )


@dataclass(frozen=True)
class _Around:
    """The function of each graph, and the bytes that it needs around the step: a step inside of a loop is outlined."""

    of_graph: Mapping[str, tuple[str, int]]

    @classmethod
    def of(cls, plans: Iterable[StepPlan], peaks: Mapping[str, int], graphs: Mapping[str, Graph]) -> _Around:
        """`peaks`: of the functions, before anything is copied, without dead code."""
        from ...planning.evaluate import peak_bytes

        found = dict[str, tuple[str, int]]()
        for plan in plans:
            if (graph := graphs.get(plan.graph)) is not None:
                function = function_around(plan.function)
                found[plan.graph] = function, max(0, peaks[function] - peak_bytes(graph))
        return cls(found)

    def wanted(self, graph: Graph, wanted: Mapping[str, int] | None) -> tuple[int | None, int]:
        """What its step may need, None for as little as can be, and what is needed around it."""
        function, besides = self.of_graph[graph.fingerprint]
        return None if wanted is None else wanted[function] - besides, besides
