"""Plan a training step that is given as a graph: solve one budget or several, or evaluate an order of execution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ...options.memory_model import ORDER
from ...planning.solvers.graph_file import BadGraph, read_graph, result_text
from ...planning.solvers.incumbent import Incumbent
from ...planning.solvers.lowest_peak import lowest_peak_plan
from ...planning.solvers.problem import Pair, Problem
from ...planning.solvers.result import Infeasible
from ...planning.solvers.sequence import evaluate, order_text, read_order, sequence_of
from ...planning.solvers.solvers_by_name import WITH_VIEWS, solve
from ...planning.solvers.sweep import Outcome, sweep
from ...reports.curve import Sweep, curve_of
from ...support.counted import counted
from ...support.interrupts import Interrupt
from ...support.progress import ProgressLine
from ...support.units import format_bytes, format_percent, parse_budget, readable_bytes
from ..file_access.files import read_text, write_outputs
from .curve_files import markers_of, with_named_views, write_curves
from .plan_arguments import PLANNED, REFUSED, PlanArguments, exit_code_of, print_lines, progress_line
from .plan_output import fit_line, marker_lines, peak_line, refusal_lines, result_lines, title
from .sweep_table import SweepTable


@dataclass(frozen=True, kw_only=True)
class _GraphTask:
    """The task to plan a graph: the graph, its plain peak in bytes, the command line, the progress line, and the time
    limit for each budget."""

    options: PlanArguments
    name: str
    problem: Problem
    plain_peak: int
    interrupt: Interrupt
    line: ProgressLine
    seconds: float | None

    def solve(self, budget: int, starts: Iterable[frozenset[Pair]] = (), prefix: str = "") -> Outcome:
        """Return the best plan within a budget in bytes. `prefix`: the beginning of each progress message."""
        views = self.options.view_copies
        best = Incumbent(
            self.problem,
            budget,
            self.seconds,
            lambda text: self.line.set_phase(prefix + text),
            self.interrupt.is_set,
        )
        solver, effort = WITH_VIEWS if views else self.options.solver, self.options.search_effort()
        # With copies of views, operation indices differ between plans, so a plan cannot be the start of another search.
        return solve(self.problem, budget, solver=solver, best=best, starts=() if views else starts, effort=effort)


def plan_graph(options: PlanArguments, text: str, name: str) -> int:
    """Plan a graph as the command line requests, and print the result.

    Args:
        options: The command line.
        text: The graph, as JSON.
        name: The name of the input, for messages.

    Returns:
        The exit code.

    Raises:
        BadGraph: If the text is not a valid graph.
        FileError: If a file cannot be read or written.
        ValueError: For options that do not apply to the graph.
    """
    _demand_graph_options(options)
    problem = read_graph(text, name)
    plain_peak = evaluate(problem, sequence_of(problem, ())).peak_bytes
    if plain_peak == 0:
        raise BadGraph(f"{name}: error: the plain peak is 0 bytes: there is nothing to plan")
    with progress_line(options, name) as line, Interrupt() as interrupt:
        task = _GraphTask(
            options=options,
            name=name,
            problem=problem,
            plain_peak=plain_peak,
            interrupt=interrupt,
            line=line,
            seconds=options.time_limit if options.sweep is None else options.sweep_seconds,
        )
        if options.evaluate is not None:
            return _evaluate(task)
        if options.sweep is not None:
            return _sweep(task)
        budget = parse_budget(options.limit, plain_peak)
        outcome = _solve_least(task) if budget is None else task.solve(budget)
    return _write(task, outcome)


def _demand_graph_options(options: PlanArguments) -> None:
    """Raise `ValueError` for options that do not apply to graphs, or that exclude each other for graphs."""
    if options.split_input_file:
        raise ValueError("--split-input-file applies only to steps in MLIR: a graph is a single JSON object")
    if options.memory_model != ORDER:
        raise ValueError(
            "--memory-model applies only to steps in MLIR: the memory of a graph is always counted in program order"
        )
    if options.view_copies and options.solver != "auto" and options.evaluate is None:
        raise ValueError(f"--view-copies on requires --solver auto, not '{options.solver}'")


def _solve_least(task: _GraphTask) -> Outcome:
    """Return the cheapest plan with the lowest peak that is found."""
    least = lowest_peak_plan(task.problem, task.interrupt.is_set)
    return task.solve(least.peak_bytes, [least.pairs])


def _write(task: _GraphTask, outcome: Outcome) -> int:
    """Write the files that the options request, and print the outcome. Return the exit code."""
    options = task.options
    aside = "-" in (options.output, options.sequence)
    lines = [title(task.name, task.problem, task.plain_peak)]
    if options.fit is not None:
        lines.insert(0, fit_line(outcome, options.fit))
    if isinstance(outcome, Infeasible):
        print_lines([*lines, *refusal_lines(outcome)], aside)
        return exit_code_of([outcome])
    files = list[tuple[str | None, bytes]]()
    if options.output is not None:
        files.append((options.output, result_text(outcome, task.name).encode()))
    if options.sequence is not None:
        order = sequence_of(outcome.problem, outcome.pairs)
        files.append((options.sequence, order_text(outcome.problem, order.tolist()).encode()))
    write_outputs(files)
    print_lines([*lines, *result_lines(outcome, task.plain_peak)], aside)
    return PLANNED


def _sweep(task: _GraphTask) -> int:
    options, count = task.options, task.options.sweep_count()
    markers = markers_of(task.problem, options.beside)
    budgets = [max(1, task.plain_peak * at // count) for at in range(1, count + 1)]

    def solve_budget(budget: int, starts: Iterable[frozenset[Pair]]) -> Outcome:
        place = budgets.index(budget)
        words = f"budget {place + 1} of {count}, {format_bytes(budget)}"
        task.line.set_phase(words, place / count)
        return task.solve(budget, starts, f"{words}: ")

    table = SweepTable(task.line, task.interrupt, task.seconds)
    table.open(title(task.name, task.problem, task.plain_peak), task.plain_peak)
    outcomes = sweep(budgets, solve_budget, task.interrupt.is_set, table.report)
    table.close(budgets, outcomes)
    print_lines(marker_lines(markers, task.plain_peak))
    if options.curve is not None:
        name = Path(task.name).name
        write_curves(options.curve, [curve_of(name, Sweep(task.problem, task.plain_peak, budgets, outcomes), markers)])
    return exit_code_of(outcomes)


def _evaluate(task: _GraphTask) -> int:
    text, name = read_text(task.options.evaluate)
    problem = with_named_views(task.problem, text)
    evaluation = evaluate(problem, read_order(problem, text, name))
    extra = evaluation.cost - task.problem.total_cost
    lines = [
        title(task.name, task.problem, task.plain_peak),
        peak_line(evaluation.peak_bytes, task.plain_peak),
        f"extra cost: {format_percent(task.problem.percent(extra))} %, "
        f"{counted(len(evaluation.bytes_at), 'execution')}",
    ]
    budget = None if task.options.budget is None else parse_budget(task.options.budget, task.plain_peak)
    kept = budget is None or evaluation.peak_bytes <= budget
    if budget is not None:
        lines.append(f"budget: {'met' if kept else 'not met'}, {readable_bytes(budget)}")
    print_lines(lines)
    return PLANNED if kept else REFUSED
