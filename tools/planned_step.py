"""`recompute-plan step.mlir`: the curve of a training step over budgets, and whether the step fits a budget."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, ParseError

from ..driver.fit import Fit, Verdict, fit
from ..driver.pareto_by_model import NO_BOUND, swept_by_model
from ..driver.pareto_in_order import SweepOptions, SweptStep, swept_steps
from ..driver.verified import verify_module
from ..mlir_io.parser import parse_module
from ..options.loop_schedule import schedule_of
from ..options.memory_model import ORDER
from ..reports.curve import Point, SegmentRecomputation
from ..support.counted import counted
from ..support.interrupts import Interrupt, stopping
from ..support.units import format_bytes, readable_bytes
from ..transforms.take_marks import take_marks
from .curve_files import write_curves
from .plan_arguments import (
    BAD_INPUT,
    FIT_SECONDS,
    INTERRUPTED,
    PLANNED,
    REFUSED,
    UNPROVED,
    effort_of,
    exit_code_of,
    print_lines,
    shown_progress,
    sweep_count,
)
from .plan_output import NO_BOUND_KNOWN, sweep_lines, unproved_lines, without_operations
from .reporting import InputText, of_exception

FOR_GRAPHS = "budget evaluate output sequence beside".split()
"""The options that apply only to graphs."""
INSTEAD = "recompute-opt -p 'recompute{budget=…}' --emit-plan PLAN.json"
STOPPED = "  the search was stopped: this is the best plan so far, and less work may suffice"
SEGMENTS = 6
"""The maximum number of segments listed for a point, the most expensive ones."""


def plan_step(options: argparse.Namespace, text: str, name: str) -> int:
    """Plan a step, print the result, and return the exit code.

    Args:
        options: The command line.
        text: The step as MLIR.
        name: The name of the file.

    Raises:
        ValueError: For options that apply only to graphs, and for an invalid budget.
        FileError: For a file that cannot be written.
    """
    graph_options = [f"--{name}" for name in FOR_GRAPHS if getattr(options, name)]
    graph_options += ["--view-copies"] if options.view_copies == "on" else []
    if graph_options:
        raise ValueError(f"{graph_options[0]} applies only to graphs; steps have --sweep, --fit and {INSTEAD}")
    if options.fit is not None and options.solver != "auto":
        search = "the search of recompute{budget=…}"
        raise ValueError(f"--solver applies only to graphs and to --sweep; --fit always uses {search}")
    try:
        module = step_of(text, name)
        return _fit(options, module, name) if options.sweep is None else _sweep(options, module, name)
    except (ParseError, DiagnosticException) as error:
        print(of_exception(error, InputText(name, text)).to_text(), file=sys.stderr)
        return BAD_INPUT


def _fit(options: argparse.Namespace, module: ModuleOp, name: str) -> int:
    effort = effort_of(options, default="brief")
    seconds = FIT_SECONDS if options.time_limit is None else options.time_limit
    interrupts = Interrupt.count
    with shown_progress(options, name) as line, stopping(seconds) as stop:
        answer = fit(module, options.fit, options.memory_model, stop, effort, line.at)
    print_lines(fit_lines(answer, options.memory_model, name))
    if answer.verdict is Verdict.NOT_FOUND:
        return UNPROVED if Interrupt.count == interrupts else INTERRUPTED
    return PLANNED if answer.fits else REFUSED


def _sweep(options: argparse.Namespace, module: ModuleOp, name: str) -> int:
    if options.memory_model != ORDER:
        return _sweep_by_model(options, module, name)
    with shown_progress(options, name) as line, Interrupt() as interrupt:
        sweep = SweepOptions(
            sweep_count(options),
            options.solver,
            effort_of(options),
            options.time_limit,
            line.at,
            interrupt.is_set,
        )
        steps = swept_steps(module, sweep)
    print_lines([line for step in steps for line in _sweep_lines(step)])
    if options.curve is not None:
        write_curves(options.curve, [step.curve for step in steps])
    return exit_code_of([outcome for step in steps for outcome in step.outcomes])


def _sweep_by_model(options: argparse.Namespace, module: ModuleOp, name: str) -> int:
    if options.solver != "auto" or options.time_limit is not None:
        raise ValueError("--solver and --time-limit are for program order; the model xla has a search of its own")
    with shown_progress(options, name) as line, Interrupt() as interrupt:
        curve = swept_by_model(module, sweep_count(options), line.at, interrupt.is_set)
    peak = curve.plain_peak_bytes
    lines = [f"{curve.name}: plain peak {readable_bytes(peak)} of temporaries; {NO_BOUND}"]
    lines += [*unproved_lines(curve), "what runs again"]
    print_lines([*lines, *(line for point in curve.points for line in _again_lines(point, peak))])
    if options.curve is not None:
        write_curves(options.curve, [curve])
    return PLANNED if curve.points else UNPROVED


def step_of(text: str, name: str) -> ModuleOp:
    """Parse and verify a step, with its marks converted to attributes.

    Raises `ParseError`, and `Refusal` for a module that does not verify."""
    module = parse_module(text, name)
    take_marks(module)
    verify_module(module)
    return module


def _sweep_lines(step: SweptStep) -> Iterator[str]:
    peak, count = step.plain_peak_bytes, len(step.problem)
    size = f"{readable_bytes(peak)} of temporaries"
    yield f"{step.name}: {counted(count, 'operation')}, plain peak {size}, in program order"
    yield from sweep_lines(step.budgets, step.outcomes, peak)
    if step.curve.refused:
        yield f"proven minimum: {readable_bytes(step.curve.minimum_bytes)} of temporaries, determined by"
        yield from (f"  {line}" for line in step.curve.holding)
    yield "what runs again"
    for point in step.curve.points:
        yield from _again_lines(point, peak)


def _again_lines(point: Point, peak: int) -> Iterator[str]:
    if not point.recomputed_segments:
        yield f"  {point.budget_bytes / peak:.4f}: nothing"
        return
    others = point.recomputed_segments[SEGMENTS:]
    listed = ", ".join(map(_segment_cost, point.recomputed_segments[:SEGMENTS]))
    more = f", and {counted(len(others), 'more segment')}, {sum(row.percent for row in others):.4f} %" if others else ""
    yield f"  {point.budget_bytes / peak:.4f}: {listed}{more}"


def _segment_cost(row: SegmentRecomputation) -> str:
    return f"{row.segment or 'outside segments'} {row.percent:.4f} % ({row.executions})"


def fit_lines(answer: Fit, model: str, name: str) -> list[str]:
    """Return the output of `--fit`, the answer in the first line.

    Args:
        answer: The verdict.
        model: The memory model.
        name: The name of the file.
    """
    if not answer.fits:
        return list(_no(answer) if answer.verdict is Verdict.NO else _not_found(answer))
    return list(_as_it_is(answer) if answer.verdict is Verdict.AS_IT_IS else _recomputation_lines(answer, model, name))


def _as_it_is(answer: Fit) -> Iterator[str]:
    yield f"yes, as it is: the step fits {answer.budget}"
    yield from _needs(answer, answer.plain)


def _recomputation_lines(answer: Fit, model: str, name: str) -> Iterator[str]:
    work = f"{answer.extra_percent:.4f} % extra work ({_bound_of(answer)})"
    yield f"yes, with recomputation: the step fits {answer.budget} at {work}"
    if not answer.finished:
        yield STOPPED
    yield from _needs(answer, answer.peaks)
    again = "1 operation runs" if answer.copies == 1 else f"{answer.copies} operations run"
    yield f"  {again} again; written and proved equal by"
    yield f"  recompute-opt {name} -p 'recompute{{budget={answer.budget} memory-model={model}}}' --print-debuginfo"


def _bound_of(answer: Fit) -> str:
    """Return the proven lower bound on the extra work as a phrase. A bound of 0 is no bound if there is extra work."""
    if answer.bound_percent is None or answer.bound_percent == 0 < answer.extra_percent:
        return NO_BOUND_KNOWN
    cut = "" if answer.loops is None else f", with {schedule_of(answer.loops).pass_option}"
    return f"at least {answer.bound_percent:.4f} % is proved to be needed{cut}"


def _no(answer: Fit) -> Iterator[str]:
    if answer.limits and answer.lower_bound is not None:
        least = answer.lower_bound.bytes
        around = sum(answer.argument_and_result_bytes.values())
        yield (
            f"no: the step does not fit {answer.budget}: the proven minimum is {format_bytes(least + around)} of the "
            f"device, {readable_bytes(least)} of temporaries"
        )
    else:
        yield f"no: {answer.reason}"
    yield from _needs(answer, answer.plain)
    yield from _minimum(answer)


def _not_found(answer: Fit) -> Iterator[str]:
    stopped = "" if answer.finished else " before the search was stopped"
    yield f"unknown: no plan was found{stopped} with which the step fits {answer.budget}, and none is proved impossible"
    yield f"  {without_operations(answer.reason)}"
    yield from _needs(answer, answer.plain)
    yield from _minimum(answer)


def _minimum(answer: Fit) -> Iterator[str]:
    """Yield lines on the proven minimum of temporaries, if one is known."""
    if answer.lower_bound is not None:
        yield f"  the proven minimum of temporaries, {format_bytes(answer.lower_bound.bytes)}, is determined by"
        yield from (f"    {line}" for line in answer.lower_bound.lines())


def _needs(answer: Fit, peaks: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each function: its bytes on the device, with temporaries of `peaks`, in parts."""
    for name, after in peaks.items():
        before, around = answer.plain[name], answer.argument_and_result_bytes[name]
        change = format_bytes(before) if after == before else f"{format_bytes(before)} -> {format_bytes(after)}"
        yield (
            f"  @{name} needs {format_bytes(after + around)} of the device {answer.memory_model}: "
            f"temporaries {change}, arguments and results {format_bytes(around)}"
        )
