"""A rewrite that keeps a budget as it is written: planned, carried out, counted, and planned again.

In program order a plan of the solvers is carried out, and where merging what is the same, after the copies are in, has
it live longer than planned, less is asked for. By the model of XLA:CPU, which sees another program, plans of all kinds
are foreseen, and the cheapest of those that are foreseen to fit are carried out until one does. What is chosen without
a budget is taken where it fits and is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from xdsl.dialects.builtin import ModuleOp

from ...analysis.request.loop_schedule import Loops
from ...analysis.step.functions import functions_of
from ...dialects.diagnostics import Refusal, Remark
from ...planning.graph import Graph
from ...planning.objective import EAGER_SHARE
from ...planning.picking import Picking
from ...planning.plan import Plan
from ...planning.plan_file import StepPlan
from ..clone import Planner
from .budget import ERROR, Allowed, Budget, allowed
from .candidates import Search, candidates
from .counted import ORDER, timelines_of

ROUNDS, XLA_ROUNDS = 5, 6
"""So often what was written is above the budget before that is said."""


class Outcome(Protocol):
    """What a rewrite says of itself. `eager`: the peak of executors that start what they can, the largest."""

    @property
    def plans(self) -> tuple[StepPlan, ...]: ...
    @property
    def extra_flops(self) -> int: ...
    @property
    def copies(self) -> int: ...
    @property
    def eager(self) -> int: ...


O = TypeVar("O", bound=Outcome)  # noqa: E741
Run = Callable[[Sequence[StepPlan] | Planner | None, Loops], tuple[ModuleOp | None, O]]
"""The module rewritten, or None where it stays as it is, and what was done: by plans, by a planner, or as without a
budget."""


@dataclass(frozen=True)
class Within(Generic[O]):
    """A module that keeps the budget, None where the step stays as it is, what was done, and what is said of it.

    `loops`: which of them the plans are for.
    """

    module: ModuleOp | None
    outcome: O
    peaks: Mapping[str, int]
    remarks: tuple[Remark, ...]
    loops: Loops


def within_budget(module: ModuleOp, budget: Budget, search: Search, run: Run[O]) -> Within[O]:
    """`run` leaves the module as it is. Raises `Refusal`, with the proven minimum where there is one."""
    asked = allowed(module, budget)
    one = _Budgeted(module, budget, search, run, asked)
    if asked.is_kept:
        return one.nothing()
    found = one.in_order() if budget.model == ORDER else one.by_model()
    return Within(found.module, found.outcome, found.peaks, (one.kept(found),), found.loops)


@dataclass(frozen=True)
class _Written(Generic[O]):
    module: ModuleOp | None
    outcome: O
    peaks: Mapping[str, int]
    loops: Loops


@dataclass(frozen=True)
class _Budgeted(Generic[O]):
    module: ModuleOp
    budget: Budget
    search: Search
    run: Run[O]
    allowed: Allowed

    def written(self, planned: Sequence[StepPlan] | Planner | None, loops: Loops | None = None) -> _Written[O]:
        loops = self.search.loops if loops is None else loops
        module, outcome = self.run(planned, loops)
        peaks = {name: one.peak_bytes for name, one in timelines_of(module or self.module, self.budget.model) if name}
        return _Written(module, outcome, peaks, loops)

    def nothing(self) -> Within[O]:
        done = self.written(lambda _: Plan(), False)
        needed = ", ".join(f"{peak} bytes" for peak in self.allowed.plain.values())
        said = f"nothing to do: the step needs {needed} at its peak {self.budget.by}, within the budget {self._asked()}"
        return Within(None, done.outcome, done.peaks, (self._remark(said),), False)

    def in_order(self) -> _Written[O]:
        """Raises `Refusal`."""
        graphs = dict[str, Graph]()

        def look(graph: Graph) -> Plan:
            graphs[graph.fingerprint] = graph
            return Plan()

        plain = self.written(look)
        if self._is_kept(plain):
            return plain
        around = _Around.of(plain, graphs)
        found, refused = list[_Written[O]](), None
        try:
            found.append(self._planned(around))
        except Refusal as error:
            refused = error
        ordinary = self.written(None)
        if ordinary.outcome.copies and self._is_kept(ordinary):
            found.append(ordinary)
        if not found:
            assert refused is not None, "nothing was found"
            raise refused
        return min(found, key=lambda one: (self._eager_excess(one) > 0, one.outcome.extra_flops))

    def _planned(self, around: _Around) -> _Written[O]:
        """Where tokens are to hold for executors that start what they can, they are chained, then less is asked for."""
        from ...planning.solvers.of_graph import bytes_within, plan_within
        from ...planning.solvers.result import NoPlan

        less, chain, kept, over = 0, False, list[tuple[int, _Written[O]]](), 0
        for _ in range(ROUNDS):

            def planner(graph: Graph, less: int = less, chain: bool = chain) -> Plan:
                wanted, besides = around.wanted(graph, self.allowed.wanted)
                most = bytes_within(graph, "min") if wanted is None else wanted - less
                try:
                    return plan_within(graph, most, chain=chain)
                except NoPlan as error:
                    raise NoPlan(f"{error}{f', and {besides} bytes around the block' if besides else ''}") from error

            try:
                done = self.written(planner)
            except Refusal:
                if not kept:
                    raise
                break
            over, early = self.allowed.over(done.peaks), self._eager_excess(done)
            if over <= 0 and early <= 0:
                return done
            if over <= 0:
                kept.append((early, done))
            if chain or over > 0:
                less += max(over, early // 2)
            chain = chain or early > 0
        if kept:
            return min(kept, key=lambda one: one[0])[1]
        raise Refusal(
            self.module, f"no plan keeps the budget {self._asked()} as it is written: the last is {over} bytes above"
        )

    def _is_kept(self, done: _Written[O]) -> bool:
        return self.allowed.wanted is not None and self.allowed.over(done.peaks) <= 0

    def _eager_excess(self, done: _Written[O]) -> int:
        """Bytes above the budget for an executor that starts what it can, as far as tokens are to hold it back."""
        if not self.search.emission.is_ordered or self.allowed.wanted is None:
            return 0
        return int(done.outcome.eager / EAGER_SHARE) - max(self.allowed.wanted.values(), default=0)

    def by_model(self) -> _Written[O]:
        """Raises `Refusal`."""
        pool, asked = candidates(self.module, self.search), self.allowed
        written = dict[int, _Written[O]]()
        plain = 1.0, asked.share(asked.plain)
        least = min((one.foreseen.need for one in pool), default=1.0)
        limit = 1.0 if asked.wanted is not None else least
        picking = Picking([one.foreseen for one in pool], limit, plain)

        def needed(at: int) -> float | None:
            try:
                written[at] = self.written(pool[at].plans, pool[at].loops)
            except Refusal:
                return None
            return asked.share(written[at].peaks)

        best = picking.run(needed, XLA_ROUNDS)
        if best is None and asked.wanted is None and written:
            best = min(written, key=picking.measured.__getitem__)
        if best is None:
            raise Refusal(self.module, self._not_reached([one.peaks for one in written.values()]))
        return written[best]

    def _not_reached(self, reached: Sequence[Mapping[str, int]]) -> str:
        words = f"no plan keeps the budget {self._asked()} {self.budget.by}, {ERROR}"
        if not reached:
            return f"{words}: nothing can be recomputed"
        least = min(reached, key=self.allowed.share)
        needed = ", ".join(f"{least[name]}" for name in self.allowed.plain)
        return f"{words}: of {len(reached)} that were written the least needs {needed} bytes; nothing is proved"

    def kept(self, done: _Written[O]) -> Remark:
        before, after = self.allowed.plain, done.peaks
        peaks = ", ".join(f"{before[name]} -> {after[name]}" for name in before)
        model = self.budget.by if self.budget.model == ORDER else f"{self.budget.by}, {ERROR}"
        extra = f"{done.outcome.copies} operations run again, {done.outcome.extra_flops} FLOPs more"
        return self._remark(f"budget {self._asked()}: {peaks} bytes at the peak {model}; {extra}")

    def _asked(self) -> str:
        if self.allowed.wanted is None:
            return f"{self.budget.text}"
        return f"of {self.budget.text} ({', '.join(map(str, self.allowed.wanted.values()))} bytes of temporaries)"

    def _remark(self, said: str) -> Remark:
        return Remark(functions_of(self.module)[0], said)


@dataclass(frozen=True)
class _Around:
    """For each graph the function that it is of, and what that needs besides while the step runs: a step inside of a
    loop is a function of its own meanwhile."""

    of_graph: Mapping[str, tuple[str, int]]

    @classmethod
    def of(cls, plain: _Written[O], graphs: Mapping[str, Graph]) -> _Around:
        from ...planning.evaluate import peak_bytes

        found = dict[str, tuple[str, int]]()
        for one in plain.outcome.plans:
            if (graph := graphs.get(one.graph)) is not None:
                function = one.function.split("/")[0]
                found[one.graph] = function, max(0, plain.peaks[function] - peak_bytes(graph))
        return cls(found)

    def wanted(self, graph: Graph, wanted: Mapping[str, int] | None) -> tuple[int | None, int]:
        """What its step may need, None for as little as can be, and what is needed around it."""
        function, besides = self.of_graph[graph.fingerprint]
        return None if wanted is None else wanted[function] - besides, besides
