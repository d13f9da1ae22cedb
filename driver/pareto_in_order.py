"""Curves of memory and cost for a step over several budgets: in program order for each block with a gradient, where
peaks are counted on the graph as it will be (`planning/simulate.py`); or by the model of XLA:CPU, where each budget is
kept by a plan that was carried out and measured. The input is not changed. Loops are cut first, as under a budget.

The plans of the second curve are those that a budget by that model chooses from; a rewrite for one budget is reused for
all. No lower bound is proved for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..analysis.memory.timeline import Labels, described
from ..analysis.step.order import functions_of
from ..analysis.step.step import Step
from ..options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from ..planning.calibrated_search import CalibratedSearch
from ..planning.liveness import peak_bytes
from ..planning.plan_file import StepPlan
from ..planning.solvers.effort import Effort
from ..planning.solvers.incumbent import Incumbent
from ..planning.solvers.problem import Pair, Problem
from ..planning.solvers.result import Infeasible, Progress, Result, Stop
from ..planning.solvers.solve_graph import carried_within, problem_of_graph
from ..planning.solvers.solvers_by_name import solve
from ..planning.solvers.sweep import Outcome, sweep
from ..reports.curve import Again, Curve, Point, Refused, Sweep, curve_of
from ..rules.costs.cost import FLOPS
from ..rules.flops import flops
from ..search.budget.limits import ERROR
from ..search.checked_options import cost_option
from ..search.pool import ModuleCandidate, Pool, pool_of
from ..search.prepare import prepare
from ..search.rewrite import recomputed_once
from ..support.diagnostics import Refusal
from ..transforms.phase import numbered_steps
from ..transforms.preparation.timelines import XLA, flat, timelines_of
from .fit import lower_bound, named

NAMED_VALUES = 3
"""The number of values of a segment that are named, the most expensive first."""


@dataclass(frozen=True)
class Sweeping:
    """Options of a curve: budgets 1/n, 2/n, … of the plain peak; `seconds` for each; `stop` ends the search with the
    results so far."""

    count: int
    solver: str
    effort: Effort
    seconds: float | None
    progress: Progress
    stop: Stop


@dataclass(frozen=True)
class Swept:
    """A block with a gradient: the `budgets` and what came of them; `curve` shows it."""

    name: str
    problem: Problem
    plain_peak_bytes: int
    budgets: tuple[int, ...]
    outcomes: tuple[Outcome, ...]
    curve: Curve


def swept_steps(module: ModuleOp, sweeping: Sweeping, cost: str = FLOPS) -> list[Swept]:
    """Return a curve for each block with a gradient. The module is not changed. Raises `Refusal` for a module without a
    gradient, for dynamic shapes, and for an unknown cost."""
    prepared = prepare(module)
    steps = numbered_steps(prepared.module, costs=cost_option(prepared.module, cost).of)
    loops = f", loops cut for {prepared.rolled.extra_flops} FLOPs more" if prepared.rolled.copies else ""
    return [_swept(f"@{function.sym_name.data}{loops}", step, sweeping) for function, step in steps]


def _swept(name: str, step: Step, sweeping: Sweeping) -> Swept:
    problem, plain = problem_of_graph(step.graph), peak_bytes(step.graph)
    budgets = tuple(max(1, plain * at // sweeping.count) for at in range(1, sweeping.count + 1))
    outcomes = tuple(
        sweep(budgets, lambda budget, starts: _solved(step, problem, budget, starts, sweeping), sweeping.stop)
    )
    labels = Labels.of(step.phases)

    def again(result: Result) -> tuple[Again, ...]:
        return tuple(_again(step, problem, labels, result.pairs))

    held = tuple(lower_bound(step).lines())
    curve = curve_of(name, Sweep(problem, plain, budgets, outcomes), again=again, holding=held)
    return Swept(name, problem, plain, budgets, outcomes, curve)


def _solved(
    step: Step, problem: Problem, budget: int, starts: Iterable[frozenset[Pair]], sweeping: Sweeping
) -> Outcome:
    sweeping.progress(f"budget {budget} bytes of temporaries")
    starts = tuple(starts)

    def solved(limit: int) -> Outcome:
        best = Incumbent(problem, limit, sweeping.seconds, sweeping.progress, sweeping.stop)
        return solve(problem, limit, sweeping.solver, best, starts, sweeping.effort)

    carried = carried_within(step.graph, problem, budget, solved)
    return carried if isinstance(carried, Infeasible) else carried.result


def _again(step: Step, problem: Problem, labels: Labels, pairs: Iterable[Pair]) -> Iterator[Again]:
    """Yield the recomputed operations by segment, the most expensive segments first."""
    runs = dict[str, list[int]]()
    for _, op in pairs:
        runs.setdefault(labels.segment_of(step.operation(op)), []).append(op)

    def cost(operations: Iterable[int]) -> int:
        return sum(int(problem.costs[op]) for op in operations)

    for segment, operations in sorted(runs.items(), key=lambda run: (-cost(run[1]), run[0])):
        largest = sorted(set(operations), key=lambda op: (-int(problem.costs[op]), op))[:NAMED_VALUES]
        values = tuple(named(step, op) for op in largest)
        yield Again(segment, len(operations), problem.percent(cost(operations)), values)


NO_BOUND = "no bound proved in this model"
REWRITES_PER_BUDGET = 3
"""The maximum number of plans written for each budget, in addition to those written for other budgets."""
NAMED_OF_SEGMENT = 3
"""The number of values of a segment that are named, the most expensive first."""


@dataclass
class _Written:
    """The rewrites that were measured, by the number of their plan in the pool: the share of the plain step's
    temporaries, and the extra FLOPs."""

    module: ModuleOp
    pool: Pool
    stop: Stop
    plain: Mapping[str, int]
    needs: dict[int, float] = field(default_factory=dict[int, float])
    flops: dict[int, int] = field(default_factory=dict[int, int])

    def needed(self, at: int) -> float | None:
        candidate = self.pool.candidates[at]
        try:
            rewritten, outcome = recomputed_once(
                self.module, RecomputeOptions(plan=candidate.plans, loops=candidate.loops)
            )
        except Refusal:
            return None
        peaks = {name: line.peak_bytes for name, line in timelines_of(rewritten or self.module, XLA)}
        self.flops[at] = outcome.extra_flops
        return max(peaks[name] / max(before, 1) for name, before in self.plain.items())

    def look(self, share: float) -> None:
        """Rewrite by candidates that may keep the budget at less work than the known results."""
        search = partial(self.pool.search, stop=self.stop)
        CalibratedSearch(self.pool.predictions, share, (1.0, 1.0), self.needs).run(
            self.needed, REWRITES_PER_BUDGET, search
        )

    def best(self, share: float) -> int | None:
        """Return the least FLOPs of all that keep the budget, then the fewest bytes."""
        within = [at for at, need in self.needs.items() if need <= share]
        return min(within, key=lambda at: (self.flops[at], self.needs[at]), default=None)

    @property
    def least(self) -> float:
        return min((need for need in self.needs.values()), default=1.0)


def swept_by_model(module: ModuleOp, count: int, progress: Progress, stop: Stop) -> Curve:
    """Return the curve over budgets 1/count, 2/count, … of the plain step's temporaries, by the model of XLA:CPU.

    Once `stop` is true, no further plan is written.

    The module stays as it is. Raises `Refusal` if there is no gradient, and for dynamic shapes."""
    plain = {name: line.peak_bytes for name, line in timelines_of(module, XLA)}
    written = _Written(module, pool_of(module, DEFAULT_OPTIONS, stop), stop, plain)
    shares = [at / count for at in range(1, count)]
    for share in reversed(shares):
        progress(f"budget {share:.4f} of the temporaries, by the model of XLA:CPU")
        if not stop():
            written.look(share)
    most = max(plain.values(), default=0)
    points, refused = list[Point](), list[Refused]()
    for share in shares:
        point = _outcome(written, share, most, finished=not stop())
        (points if isinstance(point, Point) else refused).append(point)  # pyright: ignore[reportArgumentType]
    points.append(Point(most, most, 0.0, 0.0, "nothing runs again", "plain", True))
    name = f"{', '.join(f'@{point}' for point in plain)} by the model of XLA:CPU, {ERROR}"
    return Curve(name, most, 0, (), tuple(points), tuple(refused))


def _outcome(written: _Written, share: float, most: int, finished: bool) -> Point | Refused:
    budget = max(1, int(share * most))
    if (at := written.best(share)) is None:
        least = (
            f"of {len(written.flops)} that were written the least needs {written.least:.4f} of the plain temporaries"
        )
        return Refused(budget, least if finished else f"stopped: {least}", proved=False)
    total, candidate = _total(written.module), written.pool.candidates[at]
    again = tuple(_again_by_model(written.module, candidate, total))
    need, percent = int(written.needs[at] * most), 100 * written.flops[at] / total
    return Point(budget, need, percent, None, NO_BOUND, candidate.words, finished, again)


def _total(module: ModuleOp) -> int:
    blocks = (block for function in functions_of(flat(module)) for block in function.body.blocks)
    return max(1, sum(flops(op) for block in blocks for op in block.ops))


def _again_by_model(module: ModuleOp, candidate: ModuleCandidate, total: int) -> Iterator[Again]:
    """Yield the recomputed operations by segment, the most expensive segments first, without those that loop bodies
    recompute."""
    plans = {plan.function: plan for plan in candidate.plans}
    runs = dict[str, list[tuple[int, Operation]]]()
    for function, step in numbered_steps(prepare(module, RecomputeOptions(loops=candidate.loops)).module):
        labels = Labels.of(step.phases)
        for op in _copied(plans.get(function.sym_name.data)):
            operation = step.operation(op)
            runs.setdefault(labels.segment_of(operation), []).append((step.graph.flops[op], operation))
    for segment, ran in sorted(
        runs.items(), key=lambda candidate: (-sum(cost for cost, _ in candidate[1]), candidate[0])
    ):
        dearest = sorted(ran, key=lambda candidate: -candidate[0])
        named = tuple(dict.fromkeys(described(op) for _, op in dearest))[:NAMED_OF_SEGMENT]
        yield Again(segment, len(ran), 100 * sum(cost for cost, _ in ran) / total, named)


def _copied(plan: StepPlan | None) -> Iterable[int]:
    return [] if plan is None else [op for group in plan.plan.groups for op in group.operations]
