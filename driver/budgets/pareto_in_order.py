"""Curves of memory and cost in program order: for each block with a gradient, a solver's plan for each budget.

Peaks are computed on the graph of the rewritten step (`planning/simulate.py`), and a lower bound on the cost is proved.
Loops are cut first, as in a budget search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp

from ...analysis.memory.timeline import Labels
from ...analysis.step.descriptions import describe_operation
from ...analysis.step.module_steps import numbered_steps
from ...analysis.step.step import Step
from ...options.memory_model import ORDER
from ...planning.liveness import peak_bytes
from ...planning.solvers.effort import Effort
from ...planning.solvers.incumbent import Incumbent
from ...planning.solvers.problem import Pair, Problem
from ...planning.solvers.result import Infeasible, Progress, Result, Stop
from ...planning.solvers.solve_graph import problem_of_graph, solve_until_rewritten_fits
from ...planning.solvers.solvers_by_name import solve
from ...planning.solvers.sweep import Outcome, sweep
from ...reports.curve import Curve, SegmentRecomputation, Sweep, curve_of
from ...rules.costs.cost import FLOPS
from ...search.checked_options import cost_option
from ...search.prepare import prepare
from ...support.units import format_bytes
from ...transforms.preparation.timelines import peaks_of
from .lower_bound import lower_bound

MAX_NAMED_VALUES = 3
"""The maximum number of values that are listed for a segment. The most expensive ones are listed."""


class SweepObserver(Protocol):
    """Receives each message and result of a sweep as soon as it is available."""

    def begin(self, name: str, problem: Problem, plain_peak_bytes: int) -> None:
        """Receive the block whose budgets are solved next; the arguments are as in `SweptStep`."""

    def set_phase(self, phase: str, share: float | None = None) -> None:
        """Receive a progress message, and the share of the work that is done."""

    def report(self, budget: int, outcome: Outcome) -> None:
        """Receive the outcome of a budget in bytes, as `planning.solvers.sweep.sweep` reports it."""


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Options of a curve.

    Attributes:
        count: The number n of budgets. The budgets are 1/n, 2/n, … of the plain peak.
        solver: The name of the solver.
        effort: The effort of the solver.
        seconds: The time limit for each budget; None for no limit.
        observer: The receiver of messages and results.
        stop: A predicate that ends the search with the results so far.
    """

    count: int
    solver: str
    effort: Effort
    seconds: float | None
    observer: SweepObserver
    stop: Stop


@dataclass(frozen=True, kw_only=True)
class SweptStep:
    """A block with a gradient, solved for several budgets.

    Attributes:
        name: The name of the function, followed by the FLOPs that cutting its loops adds.
        problem: The problem that was solved.
        plain_peak_bytes: The peak of the unchanged block.
        budgets: The budgets in bytes.
        outcomes: The outcome for each budget.
        curve: The curve of these outcomes.
    """

    name: str
    problem: Problem
    plain_peak_bytes: int
    budgets: tuple[int, ...]
    outcomes: tuple[Outcome, ...]
    curve: Curve


def swept_steps(module: ModuleOp, options: SweepOptions, cost: str = FLOPS) -> Iterator[SweptStep]:
    """Yield a curve for each block with a gradient, until the search is stopped.

    Args:
        module: The step, which is left unchanged.
        options: The budgets, and the options of the solvers.
        cost: The cost that plans minimize, as in `RecomputeOptions`.

    Raises:
        Refusal: For a module without a gradient, for dynamic shapes, and for an unknown cost.
    """
    prepared = prepare(module)
    steps = numbered_steps(prepared.module, costs=cost_option(prepared.module, cost).of)
    loops = ""
    if prepared.rolled.copies:
        peaks = ", ".join(map(format_bytes, peaks_of(module, ORDER).values()))
        loops = f", loops cut for {prepared.rolled.extra_flops} FLOPs more (with whole loops, the step needs {peaks})"
    for number, (function, step) in enumerate(steps):
        if number and options.stop():
            return
        shares = number / len(steps), (number + 1) / len(steps)
        yield _sweep_step(f"@{function.sym_name.data}{loops}", step, options, shares)


def _sweep_step(name: str, step: Step, options: SweepOptions, shares: tuple[float, float]) -> SweptStep:
    """Solve a block for each budget. `shares`: the start and the end of the block's work, as shares of the whole
    work."""
    problem = problem_of_graph(step.graph)
    plain = peak_bytes(step.graph)
    budgets = tuple(max(1, plain * at // options.count) for at in range(1, options.count + 1))

    def solve_budget(budget: int, starts: Iterable[frozenset[Pair]]) -> Outcome:
        place = budgets.index(budget)
        prefix = f"budget {place + 1} of {options.count}, {format_bytes(budget)}"

        def progress(line: str) -> None:
            share = shares[0] + (shares[1] - shares[0]) * place / options.count
            options.observer.set_phase(f"{prefix}: {line}", share)

        return _solve(step, problem, budget, starts, options, progress)

    options.observer.begin(name, problem, plain)
    outcomes = tuple(sweep(budgets, solve_budget, options.stop, options.observer.report))
    labels = Labels.of(step.phases)

    def recomputation_of(result: Result) -> tuple[SegmentRecomputation, ...]:
        return tuple(_recomputed_by_segment(step, problem, labels, result.pairs))

    holding = tuple(lower_bound(step).lines())
    curve = curve_of(name, Sweep(problem, plain, budgets, outcomes), recomputation_of=recomputation_of, holding=holding)
    return SweptStep(
        name=name, problem=problem, plain_peak_bytes=plain, budgets=budgets, outcomes=outcomes, curve=curve
    )


def _solve(
    step: Step,
    problem: Problem,
    budget: int,
    starts: Iterable[frozenset[Pair]],
    options: SweepOptions,
    progress: Progress,
) -> Outcome:
    progress("solving")
    # All solves for a budget share its time limit.
    starts, began = tuple(starts), perf_counter()

    def solve_within(limit: int) -> Outcome:
        best = Incumbent(problem, limit, options.seconds, progress, options.stop, began=began)
        return solve(problem, limit, solver=options.solver, best=best, starts=starts, effort=options.effort)

    fitting = solve_until_rewritten_fits(step.graph, problem, budget, solve_within)
    return fitting if isinstance(fitting, Infeasible) else fitting.result


def _recomputed_by_segment(
    step: Step, problem: Problem, labels: Labels, pairs: Iterable[Pair]
) -> Iterator[SegmentRecomputation]:
    """Yield the recomputed operations by segment, the most expensive segment first."""
    runs = dict[str, list[int]]()
    for _, op in pairs:
        runs.setdefault(labels.segment_of(step.operation(op)), []).append(op)

    def cost(operations: Iterable[int]) -> int:
        return sum(int(problem.costs[op]) for op in operations)

    for segment, operations in sorted(runs.items(), key=lambda run: (-cost(run[1]), run[0])):
        largest = sorted(set(operations), key=lambda op: (-int(problem.costs[op]), op))[:MAX_NAMED_VALUES]
        values = tuple(describe_operation(step.operation(op)) for op in largest)
        yield SegmentRecomputation(segment, len(operations), problem.percent(cost(operations)), values)
