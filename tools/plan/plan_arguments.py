"""The command line of recompute-plan, and the exit codes and the output functions that its modes share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ...options.memory_model import MODELS, ORDER
from ...planning.solvers.effort import EFFORTS, Effort
from ...planning.solvers.result import Infeasible
from ...planning.solvers.solvers_by_name import SOLVER_NAMES
from ...planning.solvers.sweep import Outcome
from ...support.progress import ProgressLine, progress
from ..arguments.tool_parser import ToolParser
from ..file_access.files import add_split_option, demand_different_files, write_text
from ..help.version import version_of

PLANNED, REFUSED, BAD_INPUT, UNPROVED, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes. `REFUSED` means that it is proved that no plan exists. `UNPROVED` means that no plan was found."""
BY_PRECEDENCE = (PLANNED, REFUSED, UNPROVED, BAD_INPUT, INTERRUPTED)
"""The exit codes in ascending precedence. A run on several steps returns the highest code of any step."""
FIT_SECONDS = 300.0
"""The default time limit of `--fit` for a step, in seconds.

For a large step and a small budget, the search could take much longer, but its later candidates rarely meet the budget.
"""
SWEEP_SECONDS = 30.0
"""The default time limit of `--sweep` for each budget, in seconds.

A budget just above the proven minimum could take minutes, in which the best plan rarely becomes much cheaper.
"""


@dataclass(frozen=True, kw_only=True)
class PlanArguments:
    """The parsed command line of recompute-plan.

    Attributes:
        input: The file with a graph or a step; "-" for standard input.
        budget: The budget of `--budget`, for a plan of a graph; None if `--budget` is not given.
        sweep: The number of budgets of a curve, as given; None if `--sweep` is not given.
        fit: The budget that the graph or step must fit; None if `--fit` is not given.
        evaluate: The file with an order of execution to evaluate; None to search for a plan.
        curve: The file to which a sweep writes its curve; None to write none.
        beside: The files with plans of other planners that a curve shows.
        memory_model: The memory model, one of `MODELS`.
        solver: The solver, one of `SOLVER_NAMES`.
        effort: The effort of the search, one of `EFFORTS`; None for the default of the task.
        time_limit: The time limit in seconds; None for the default of the task.
        view_copies: Whether plans may also copy views.
        output: The file to which the copies of a plan are written, "-" for standard output; None to write none.
        sequence: The file to which the order of execution is written; values as for `output`.
        split_input_file: The marker between the steps of the input; None if the input is a single step.
        quiet: Whether to show no progress.
    """

    input: str
    budget: str | None
    sweep: int | None
    fit: str | None
    evaluate: str | None
    curve: str | None
    beside: tuple[str, ...]
    memory_model: str
    solver: str
    effort: str | None
    time_limit: float | None
    view_copies: bool
    output: str | None
    sequence: str | None
    split_input_file: str | None
    quiet: bool

    @property
    def limit(self) -> str:
        """The budget of `--budget` or `--fit`, as given."""
        limit = self.fit if self.budget is None else self.budget
        assert limit is not None, "the caller handles --sweep and --evaluate"
        return limit

    @property
    def sweep_seconds(self) -> float | None:
        """The time limit of a sweep for each budget in seconds; None (no limit) if only an effort is given."""
        if self.time_limit is None and self.effort is None:
            return SWEEP_SECONDS
        return self.time_limit

    def sweep_count(self) -> int:
        """Return the number of budgets of a sweep. Raises `ValueError` if it is less than 1."""
        assert self.sweep is not None, "the caller checks for a sweep"
        if self.sweep < 1:
            raise ValueError(f"--sweep must be at least 1, not {self.sweep}")
        return self.sweep

    def search_effort(self, default: str = "full") -> Effort:
        """Return the effort of the search. `default`: the name of the effort if `--effort` is absent."""
        return EFFORTS[self.effort or default]()


def parse_plan_arguments(arguments: Sequence[str] | None, description: str | None = None) -> PlanArguments:
    """Parse the command line of recompute-plan. For wrong usage, argparse ends the process with exit code 2.

    Args:
        arguments: The command line; None for the command line of the process.
        description: The description of the tool in its help.
    """
    parser = plan_parser(description)
    options = parser.parse_args(arguments)
    options.view_copies, options.beside = options.view_copies == "on", tuple(options.beside)
    parsed = PlanArguments(**vars(options))
    try:
        _check_combinations(parsed)
    except ValueError as error:
        parser.error(str(error))
    return parsed


def _check_combinations(options: PlanArguments) -> None:
    """Raise `ValueError` for options that exclude or require each other."""
    questions = [question for question in (options.budget, options.sweep, options.fit) if question is not None]
    if len(questions) != 1 and not (options.evaluate and not questions):
        raise ValueError("give exactly one of --budget, --sweep and --fit, or --evaluate alone")
    if options.evaluate is not None and options.sweep is not None:
        raise ValueError("--evaluate requires --budget")
    if (options.curve is not None or options.beside) and options.sweep is None:
        raise ValueError("--curve and --beside require --sweep")
    if options.split_input_file and options.curve is not None:
        raise ValueError("--curve writes a file for a single step: remove --split-input-file")
    if options.time_limit is not None and not options.time_limit >= 0:
        raise ValueError(f"--time-limit must be at least 0 seconds, not {options.time_limit:g}")
    files = {"--output": options.output, "--sequence": options.sequence, "--curve": options.curve}
    demand_different_files({option: path for option, path in files.items() if path is not None})


def exit_code_of(outcomes: Sequence[Outcome]) -> int:
    """Return the exit code for the outcomes of one or more budgets: `PLANNED` if any of them has a plan."""
    refusals = [outcome for outcome in outcomes if isinstance(outcome, Infeasible)]
    if len(refusals) < len(outcomes):
        return PLANNED
    return REFUSED if all(refusal.proved for refusal in refusals) else UNPROVED


@contextmanager
def progress_line(options: PlanArguments, task: str) -> Generator[ProgressLine, None, None]:
    """Show the progress of the task in a line on standard error within the context, unless `--quiet` is given."""
    if options.quiet:
        yield ProgressLine(task)
        return
    with progress(f"recompute-plan: {task}", has_parts=False) as line:
        yield line


def print_lines(lines: Iterable[str], to_stderr: bool = False) -> None:
    """Print lines on standard output, or on standard error if a file is written to standard output."""
    text = "".join([f"{line}\n" for line in lines])
    if to_stderr:
        print(text, end="", file=sys.stderr, flush=True)
    else:
        write_text(None, text)


def plan_parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser for the command line of recompute-plan."""
    parser = ToolParser(
        prog="recompute-plan", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("input", metavar="GRAPH.json|STEP.mlir", help="a graph or a step; '-' is standard input")
    _add_question_options(parser)
    _add_search_options(parser)
    _add_graph_options(parser)
    add_split_option(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print progress on standard error")
    parser.add_argument("-v", "--version", action="version", version=version_of("recompute-plan"))
    return parser


def _add_question_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the task: find a plan for one budget, plot a curve over several budgets, or determine
    whether a step fits."""
    parser.add_argument("--budget", help="for graphs: the limit on peak live memory: 0.5, 50%%, 8GiB, 500MB, or min")
    parser.add_argument("--sweep", type=int, metavar="N", help="plan for the budgets 1/N, 2/N, … of the plain peak")
    parser.add_argument("--curve", metavar="FILE", help="with --sweep: write the curve as .json, .svg, .png or .html")
    parser.add_argument(
        "--beside",
        metavar="FILE",
        action="append",
        default=[],
        help="with --sweep of a graph: add the plans in FILE, made by another planner, to the curve; may be repeated",
    )
    parser.add_argument(
        "--fit",
        metavar="BUDGET",
        help="report whether the step fits; the budget of a training step is in bytes of device memory",
    )


def _add_search_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that control the search: its memory model, its solver and its limits."""
    parser.add_argument(
        "--memory-model",
        choices=MODELS,
        default=ORDER,
        help="the memory model for planning a step (default: order)",
    )
    parser.add_argument(
        "--solver",
        choices=SOLVER_NAMES,
        default="auto",
        help="the solver; auto selects a portfolio by the size of the graph",
    )
    effort = (
        "search effort: seconds, a minute, or ten minutes and more; with --fit of a step, the effort for the "
        "lower bound, brief by default"
    )
    parser.add_argument("--effort", choices=tuple(EFFORTS), help=effort)
    parser.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="seconds after which the search stops with its best plan, for each budget of a sweep; without it, --fit "
        f"of a step stops after {FIT_SECONDS:g} seconds, --sweep after {SWEEP_SECONDS:g} seconds for each budget "
        "unless --effort is given, and other searches have no limit",
    )


def _add_graph_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that apply only to graphs, such as options that write plans or evaluate orders of execution."""
    parser.add_argument(
        "--view-copies", choices=("on", "off"), default="off", help="for graphs: also allow copies of views"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="PLAN.json",
        help="for graphs: write the copies to this file as JSON; '-' is standard output",
    )
    parser.add_argument(
        "--sequence", metavar="ORDER.txt", help="for graphs: write the order of execution, one node id per line"
    )
    parser.add_argument(
        "--evaluate",
        metavar="ORDER.txt",
        help="for graphs: print the peak and the cost of this order of execution, and exit",
    )
