"""recompute-plan: what to compute again so that a graph's peak keeps a budget, and how far from the best that can be.

    recompute-plan step.json --budget 0.5
    recompute-plan step.json --budget 8GiB --view-copies on -o plan.json --sequence order.txt
    recompute-plan step.json --budget min
    recompute-plan step.json --sweep 20
    recompute-plan step.json --budget 0.5 --evaluate order.txt

The graph is a JSON file: nodes of a training step in the order of execution, with bytes and costs (docs/planning.md).
A budget is a share of the plain peak (0.5, 50%), bytes with a unit (8GiB, 500MB), or min. Printed are the peak, the
extra cost in percent of the step, a proven lower bound for it, and their difference. ORDER.txt is the order of
execution, the id of a node a line, copies repeated; `--evaluate` counts what any such order needs and costs.

Without `--time-limit` the same work is done every time, with the same result. Ctrl-C ends the search with the best
plan so far.

Exit codes: 0 a plan; 1 there is none, or none was found, and why; 2 wrong usage or bad input.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..planning.solvers.auto import Effort
from ..planning.solvers.budgets import budget_bytes
from ..planning.solvers.graph_file import BadGraph, read_graph
from ..planning.solvers.incumbent import Incumbent
from ..planning.solvers.pairs_file import result_text
from ..planning.solvers.problem import Pair, Problem
from ..planning.solvers.registry import NAMES, solve
from ..planning.solvers.result import Refusal, Result
from ..planning.solvers.sequence import evaluate, order_text, read_order, sequence_of
from ..planning.solvers.sweep import Outcome, least_budget, sweep
from ..planning.solvers.view_copies import with_copies
from .files import FileError, read_text, write_text
from .interrupts import Interrupt
from .planned import refusal_lines, result_lines, sweep_lines, title
from .start import version_of

PLANNED, REFUSED, BAD_INPUT = 0, 1, 2


@dataclass(frozen=True)
class _Task:
    options: argparse.Namespace
    name: str
    problem: Problem
    plain_peak: int
    interrupt: Interrupt

    def solved(self, budget: int, starts: Iterable[frozenset[Pair]] = ()) -> Outcome:
        options, views = self.options, self.options.view_copies == "on"
        best = Incumbent(self.problem, budget, options.time_limit, self.progress, self.interrupt.asked)
        # With copies of views the numbers of operations differ from plan to plan.
        effort = Effort.brief() if options.effort == "brief" else Effort()
        return solve(self.problem, budget, options.solver, best, () if views else starts, effort, view_copies=views)

    def progress(self, line: str) -> None:
        if not self.options.quiet:
            print(f"recompute-plan: {line}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit code."""
    parser = argument_parser()
    options = parser.parse_args(arguments)
    if (options.budget is None) == (options.sweep is None) and not (options.evaluate and options.sweep is None):
        parser.error("give either --budget or --sweep")
    try:
        return _planned(options)
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PLANNED
    except (BadGraph, FileError, ValueError) as error:
        print(_as_error(str(error)), file=sys.stderr)
        return BAD_INPUT


def _as_error(text: str) -> str:
    return text if "error: " in text else f"recompute-plan: error: {text}"


def _planned(options: argparse.Namespace) -> int:
    text, name = read_text(options.graph)
    problem = read_graph(text, name)
    plain_peak = evaluate(problem, sequence_of(problem, ())).peak_bytes
    with Interrupt() as interrupt:
        task = _Task(options, name, problem, plain_peak, interrupt)
        if options.evaluate is not None:
            return _evaluated(task)
        if options.sweep is not None:
            return _swept(task)
        budget = budget_bytes(options.budget, plain_peak)
        outcome = task.solved(least_budget(problem, interrupt.asked) if budget is None else budget)
    return _written(task, outcome)


def _written(task: _Task, outcome: Outcome) -> int:
    """The exit code; files are written and what was found is printed."""
    options = task.options
    aside = "-" in (options.output, options.sequence)
    lines = [title(task.name, task.problem, task.plain_peak)]
    if isinstance(outcome, Refusal):
        _say([*lines, *refusal_lines(outcome)], aside)
        return REFUSED
    if options.output is not None:
        write_text(options.output, result_text(outcome, task.name))
    if options.sequence is not None:
        order = sequence_of(outcome.problem, outcome.pairs)
        write_text(options.sequence, order_text(outcome.problem, order.tolist()))
    _say([*lines, *result_lines(outcome, task.plain_peak)], aside)
    return PLANNED


def _swept(task: _Task) -> int:
    count = task.options.sweep
    if count < 1:
        raise ValueError(f"--sweep is {count}: at least one budget")
    budgets = [max(1, task.plain_peak * at // count) for at in range(1, count + 1)]
    outcomes = sweep(budgets, task.solved)
    _say([title(task.name, task.problem, task.plain_peak), *sweep_lines(budgets, outcomes, task.plain_peak)])
    return PLANNED if any(isinstance(one, Result) for one in outcomes) else REFUSED


def _evaluated(task: _Task) -> int:
    text, name = read_text(task.options.evaluate)
    labels = {line.split("#")[0].strip() for line in text.splitlines()}
    problem = with_copies(task.problem, [view for view in task.problem.views if f"copy:{view.label}" in labels])
    found = evaluate(problem, read_order(problem, text, name))
    extra = found.cost - task.problem.total_cost
    lines = [
        title(task.name, task.problem, task.plain_peak),
        f"peak: {found.peak_bytes} bytes, {found.peak_bytes / task.plain_peak:.6f} of the plain peak",
        f"extra cost: {task.problem.percent(extra):.4f} %, {len(found.bytes_at)} executions",
    ]
    budget = None if task.options.budget is None else budget_bytes(task.options.budget, task.plain_peak)
    kept = budget is None or found.peak_bytes <= budget
    if budget is not None:
        lines.append(f"budget: {'kept' if kept else 'not kept'}, {budget} bytes")
    _say(lines)
    return PLANNED if kept else REFUSED


def _say(lines: Iterable[str], aside: bool = False) -> None:
    text = "".join([f"{line}\n" for line in lines])
    if aside:
        print(text, end="", file=sys.stderr, flush=True)
    else:
        write_text(None, text)


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="recompute-plan", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graph", metavar="GRAPH.json", help="the graph; '-' is standard input")
    parser.add_argument("--budget", help="the most bytes alive: 0.5, 50%%, 8GiB, 500MB, or min")
    parser.add_argument("--sweep", type=int, metavar="N", help="budgets 1/N, 2/N, … of the plain peak")
    parser.add_argument("--solver", choices=NAMES, default="auto", help="which one; auto: all that fits the size")
    parser.add_argument("--effort", choices=("brief", "full"), default="full", help="seconds of work, or a minute")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="end with the best so far")
    parser.add_argument("--view-copies", choices=("on", "off"), default="off", help="whether views may be copied, too")
    parser.add_argument("-o", "--output", metavar="PLAN.json", help="the copies as JSON; '-' is standard output")
    parser.add_argument("--sequence", metavar="ORDER.txt", help="the order of execution, an id of a node a line")
    parser.add_argument("--evaluate", metavar="ORDER.txt", help="count what this order needs and costs, and end")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    parser.add_argument("-v", "--version", action="version", version=version_of("recompute-plan"))
    return parser


if __name__ == "__main__":
    sys.exit(main())
