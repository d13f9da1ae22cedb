"""What memory costs a step: a curve over budgets for each of its blocks with a gradient, in program order, on paper.

Nothing is written: a plan's peak is counted on the graph as it will be (`planning/simulate.py`), and its cost is that
of its copies. Loops are cut first, as under a budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from ..analysis.memory.timeline import Labels
from ..analysis.step.step import Step
from ..planning.liveness import peak_bytes
from ..planning.solvers.effort import Effort
from ..planning.solvers.incumbent import Incumbent
from ..planning.solvers.problem import Pair, Problem
from ..planning.solvers.registry import solve
from ..planning.solvers.result import Infeasible, Progress, Result, Stop
from ..planning.solvers.solve_graph import carried_within, problem_of_graph
from ..planning.solvers.sweep import Outcome, sweep
from ..reports.curve import Again, Curve, curve_of
from ..rules.costs.cost import FLOPS
from ..search.carry_out import cost_option
from ..search.prepare import prepare
from ..transforms.phase import numbered_steps
from .lower_bound import lower_bound, named

NAMED = 3
"""The number of values of a segment that are named, the most expensive first."""


@dataclass(frozen=True)
class Sweeping:
    """How: budgets 1/n, 2/n, … of the plain peak; `seconds` for each; `stop` ends with what there is."""

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
    """One for each block with a gradient. The module stays as it is. Raises `Refusal` where there is none, for dynamic
    shapes, and for what is no cost."""
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
    curve = curve_of(name, problem, plain, budgets, outcomes, again=again, holding=held)
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
    """By segment, those that cost most first."""
    runs = dict[str, list[int]]()
    for _, op in pairs:
        runs.setdefault(labels.segment_of(step.operation(op)), []).append(op)

    def cost(operations: Iterable[int]) -> int:
        return sum(int(problem.costs[op]) for op in operations)

    for segment, operations in sorted(runs.items(), key=lambda run: (-cost(run[1]), run[0])):
        largest = sorted(set(operations), key=lambda op: (-int(problem.costs[op]), op))[:NAMED]
        values = tuple(named(step, op) for op in largest)
        yield Again(segment, len(operations), problem.percent(cost(operations)), values)
