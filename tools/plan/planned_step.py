"""`recompute-plan step.mlir`: print the trade-off curve of a training step, or whether the step fits a budget."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, ParseError

from ...driver.budgets.fit import fit
from ...driver.budgets.fit_answer import Fit, Verdict, fit_lines
from ...driver.budgets.pareto_by_model import swept_by_model
from ...driver.budgets.pareto_in_order import SweepOptions, SweptStep, swept_steps
from ...driver.verification.verified import verify_module
from ...mlir_io.parser import parse_module
from ...options.memory_model import ORDER
from ...reports.curve import Point, SegmentRecomputation
from ...support.counted import counted
from ...support.interrupts import Interrupt, stop_predicate
from ...support.units import format_percent, readable_bytes
from ...transforms.take_marks import take_marks
from ..diagnostics.reporting import InputText, of_exception
from .curve_files import write_curves
from .plan_arguments import (
    BAD_INPUT,
    FIT_SECONDS,
    INTERRUPTED,
    PLANNED,
    REFUSED,
    UNPROVED,
    PlanArguments,
    exit_code_of,
    print_lines,
    progress_line,
)
from .sweep_table import ModelSweepTable, SweepTable

FOR_GRAPHS = "budget evaluate output sequence beside".split()
"""The options that apply only to graphs."""
INSTEAD = "recompute-opt -p 'recompute{budget=…}' --emit-plan PLAN.json"
MAX_LISTED_SEGMENTS = 6
"""The maximum number of segments that are listed for a point of a curve. The most expensive ones are listed."""


def plan_step(options: PlanArguments, text: str, name: str) -> int:
    """Print the answer to `--fit` or `--sweep` for a step. Return the exit code.

    Args:
        options: The command line.
        text: The step as MLIR.
        name: The name of the file.

    Raises:
        ValueError: For options that apply only to graphs, and for an invalid budget.
        FileError: For a file that cannot be written.
    """
    graph_options = [f"--{name}" for name in FOR_GRAPHS if getattr(options, name)]
    graph_options += ["--view-copies"] if options.view_copies else []
    if graph_options:
        raise ValueError(f"{graph_options[0]} applies only to graphs; for a step, use --sweep, --fit or {INSTEAD}")
    if options.fit is not None and options.solver != "auto":
        search = "the search of recompute{budget=…}"
        raise ValueError(f"--solver applies only to graphs and to --sweep; --fit always uses {search}")
    try:
        module = step_of(text, name)
        return _fit(options, module, name) if options.sweep is None else _sweep(options, module, name)
    except (ParseError, DiagnosticException) as error:
        print(of_exception(error, InputText(name, text)).to_text(), file=sys.stderr)
        return BAD_INPUT


def _fit(options: PlanArguments, module: ModuleOp, name: str) -> int:
    effort, model = options.search_effort("brief"), options.memory_model
    seconds = FIT_SECONDS if options.time_limit is None else options.time_limit
    interrupts = Interrupt.count
    with progress_line(options, name) as line, stop_predicate(seconds) as stop:
        answer = fit(module, options.limit, model=model, stop=stop, effort=effort, progress=line.set_phase)
    print_lines(_lines_of(answer, model, name))
    if answer.verdict is Verdict.NOT_FOUND:
        return UNPROVED if Interrupt.count == interrupts else INTERRUPTED
    return PLANNED if answer.fits else REFUSED


def _lines_of(answer: Fit, model: str, name: str) -> list[str]:
    """Return the output of `--fit`: the answer, and the command that rewrites the step accordingly.

    Args:
        answer: The answer.
        model: The memory model.
        name: The name of the file.
    """
    lines = fit_lines(answer)
    if answer.verdict is Verdict.RECOMPUTED:
        lines[-1] += "; written and proved equal by"
        options = f"budget={answer.budget} memory-model={model}"
        lines.append(f"  recompute-opt {name} -p 'recompute{{{options}}}' --print-debuginfo")
    return lines


def _sweep(options: PlanArguments, module: ModuleOp, name: str) -> int:
    if options.memory_model != ORDER:
        return _sweep_by_model(options, module, name)
    steps = list[SweptStep]()
    with progress_line(options, name) as line, Interrupt() as interrupt:
        seconds = options.sweep_seconds
        table = SweepTable(line, interrupt, seconds)
        sweep = SweepOptions(
            count=options.sweep_count(),
            solver=options.solver,
            effort=options.search_effort(),
            seconds=seconds,
            observer=table,
            stop=interrupt.is_set,
        )
        for step in swept_steps(module, sweep):
            table.close(step.budgets, step.outcomes)
            line.clear()
            print_lines(_lines_after_table(step))
            steps.append(step)
    if options.curve is not None:
        write_curves(options.curve, [step.curve for step in steps])
    return exit_code_of([outcome for step in steps for outcome in step.outcomes])


def _sweep_by_model(options: PlanArguments, module: ModuleOp, name: str) -> int:
    if options.solver != "auto" or options.time_limit is not None:
        raise ValueError(
            "--solver and --time-limit apply only to --memory-model order: the model xla uses its own search"
        )
    with progress_line(options, name) as line, Interrupt() as interrupt:
        table = ModelSweepTable(line)
        curve = swept_by_model(module, options.sweep_count(), line.set_phase, interrupt.is_set, table)
        table.close(curve)
    rows = [line for point in curve.points for line in _again_lines(point, curve.plain_peak_bytes)]
    print_lines(["recomputed operations", *rows])
    if options.curve is not None:
        write_curves(options.curve, [curve])
    return PLANNED if curve.points else UNPROVED


def step_of(text: str, name: str) -> ModuleOp:
    """Parse and verify a step, with its marks converted to attributes.

    Raises `ParseError`, and `Refusal` for a module that does not verify.
    """
    module = parse_module(text, name)
    take_marks(module)
    verify_module(module)
    return module


def _lines_after_table(step: SweptStep) -> Iterator[str]:
    """Yield the lines that follow the table: the proven minimum, and the recomputed operations of each budget."""
    if step.curve.refused:
        yield f"proven minimum: {readable_bytes(step.curve.minimum_bytes)} of temporaries, determined by"
        yield from (f"  {line}" for line in step.curve.holding)
    if step.curve.points:
        yield "recomputed operations"
    for point in step.curve.points:
        yield from _again_lines(point, step.plain_peak_bytes)


def _again_lines(point: Point, peak: int) -> Iterator[str]:
    if not point.recomputed_segments:
        yield f"  {point.budget_bytes / peak:.4f}: nothing"
        return
    others = point.recomputed_segments[MAX_LISTED_SEGMENTS:]
    listed = ", ".join(map(_segment_cost, point.recomputed_segments[:MAX_LISTED_SEGMENTS]))
    percent = format_percent(sum(row.percent for row in others))
    more = f", and {counted(len(others), 'more segment')}, {percent} %" if others else ""
    yield f"  {point.budget_bytes / peak:.4f}: {listed}{more}"


def _segment_cost(row: SegmentRecomputation) -> str:
    return f"{row.segment or 'outside segments'} {format_percent(row.percent)} % ({row.executions})"
