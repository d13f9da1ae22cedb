"""`recompute-plan step.mlir`: the curve over budgets of a training step as MLIR, and whether it fits."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, ParseError

from ..driver.fit import Fit, Verdict, fit
from ..driver.pareto import Sweeping, Swept, swept_steps
from ..driver.pareto_by_model import NO_BOUND, swept_by_model
from ..driver.verification import verify_module
from ..mlir_io.parser import parse_module
from ..reports.curve import Again, Point
from ..search.budget.loop_choices import loops_option
from ..support.units import format_bytes
from ..transforms.plans.counted import ORDER
from ..transforms.take_marks import take_marks
from .curves import write_curves
from .diagnostics import of_exception
from .interrupts import Interrupt
from .plan_arguments import BAD_INPUT, INTERRUPTED, PLANNED, REFUSED, count_of, effort_of, progress_of, say
from .planned import in_short, sweep_lines, unproved_lines

FOR_GRAPHS = "budget evaluate output sequence beside".split()
INSTEAD = "recompute-opt -p 'recompute{budget=…}' --emit-plan PLAN.json"
STOPPED = "  stopped before its end: the best so far; less work may do"
SEGMENTS = 6
"""So many segments of a point are listed, those that cost most."""


def planned_step(options: argparse.Namespace, text: str, name: str) -> int:
    """The exit code; what was found is printed. Raises `ValueError` for options that are for graphs, or no budget."""
    given = [f"--{one}" for one in FOR_GRAPHS if getattr(options, one)]
    given += ["--view-copies"] if options.view_copies == "on" else []
    if given:
        raise ValueError(f"{given[0]} is for graphs; for a step there are --sweep, --fit and {INSTEAD}")
    if options.fit is not None and (options.solver != "auto" or options.time_limit is not None):
        ignored = "--solver" if options.solver != "auto" else "--time-limit"
        raise ValueError(f"{ignored} is for graphs and --sweep: --fit of a step tries what recompute{{budget=…}} would")
    try:
        module = step_of(text, name)
        return _fitted(options, module, name) if options.sweep is None else _swept(options, module)
    except (ParseError, DiagnosticException) as error:
        print(of_exception(error, name), file=sys.stderr)
        return BAD_INPUT


def _fitted(options: argparse.Namespace, module: ModuleOp, name: str) -> int:
    effort = effort_of(options, otherwise="brief")
    with Interrupt() as interrupt:
        found = fit(module, options.fit, options.memory_model, interrupt.asked, effort)
    say(fit_lines(found, options.memory_model, name))
    if not found.fits and not found.finished:
        return INTERRUPTED
    return PLANNED if found.fits else REFUSED


def _swept(options: argparse.Namespace, module: ModuleOp) -> int:
    if options.memory_model != ORDER:
        return _swept_by_model(options, module)
    with Interrupt() as interrupt:
        how = Sweeping(
            count_of(options),
            options.solver,
            effort_of(options),
            options.time_limit,
            progress_of(options),
            interrupt.asked,
        )
        swept = swept_steps(module, how)
    say([line for one in swept for line in _swept_lines(one)])
    if options.curve is not None:
        write_curves(options.curve, [one.curve for one in swept])
    return PLANNED if any(one.curve.points for one in swept) else REFUSED


def _swept_by_model(options: argparse.Namespace, module: ModuleOp) -> int:
    if options.solver != "auto" or options.time_limit is not None:
        raise ValueError("--solver and --time-limit are for program order; the model xla has a search of its own")
    with Interrupt() as interrupt:
        curve = swept_by_model(module, count_of(options), progress_of(options), interrupt.asked)
    peak = curve.plain_peak_bytes
    lines = [f"{curve.name}: plain peak {peak} bytes of temporaries ({format_bytes(peak)}); {NO_BOUND}"]
    lines += [*unproved_lines(curve), "what runs again"]
    say([*lines, *(line for point in curve.points for line in _again_lines(point, peak))])
    if options.curve is not None:
        write_curves(options.curve, [curve])
    return PLANNED if curve.points else REFUSED


def step_of(text: str, name: str) -> ModuleOp:
    """Raises `ParseError`, and `Refusal` for what does not verify."""
    module = parse_module(text, name)
    take_marks(module)
    verify_module(module)
    return module


def _swept_lines(one: Swept) -> Iterator[str]:
    peak, count = one.plain_peak_bytes, len(one.problem)
    size = f"{peak} bytes of temporaries ({format_bytes(peak)})"
    yield f"{one.name}: {count} operations, plain peak {size}, in program order"
    yield from sweep_lines(one.budgets, one.outcomes, peak)
    if one.curve.refused:
        yield f"proven minimum: {one.curve.minimum_bytes} bytes of temporaries, held up by"
        yield from (f"  {line}" for line in one.curve.holding)
    yield "what runs again"
    for point in one.curve.points:
        yield from _again_lines(point, peak)


def _again_lines(point: Point, peak: int) -> Iterator[str]:
    if not point.again:
        yield f"  {point.budget_bytes / peak:.4f}: nothing"
        return
    rest = point.again[SEGMENTS:]
    listed = ", ".join(_in_short(one) for one in point.again[:SEGMENTS])
    more = f", and {len(rest)} more segments, {sum(one.percent for one in rest):.4f} %" if rest else ""
    yield f"  {point.budget_bytes / peak:.4f}: {listed}{more}"


def _in_short(one: Again) -> str:
    return f"{one.segment or 'outside segments'} {one.percent:.4f} % ({one.executions})"


def fit_lines(found: Fit, model: str, name: str) -> list[str]:
    """What is printed, the answer first."""
    if found.verdict is Verdict.NO:
        return list(_no(found))
    return list(_as_it_is(found) if found.verdict is Verdict.AS_IT_IS else _recomputed(found, model, name))


def _as_it_is(found: Fit) -> Iterator[str]:
    yield f"yes, as it is: the step fits {found.budget}"
    yield from _needs(found, found.plain)


def _recomputed(found: Fit, model: str, name: str) -> Iterator[str]:
    if found.bound_percent is not None:
        cut = "" if found.loops is None else f", with {loops_option(found.loops)}"
        bound = f"at least {found.bound_percent:.4f} % is proved to be needed{cut}"
    else:
        bound = "nothing is proved of the least"
    yield f"yes, with recomputation: the step fits {found.budget} at {found.extra_percent:.4f} % extra work ({bound})"
    if not found.finished:
        yield STOPPED
    yield from _needs(found, found.peaks)
    yield f"  {found.copies} operations run again; written and proved equal by"
    yield f"  recompute-opt {name} -p 'recompute{{budget={found.budget} memory-model={model}}}' --print-debuginfo"


def _no(found: Fit) -> Iterator[str]:
    if not found.wanted:
        yield f"no: {found.reason}"
    elif found.lower_bound is not None and found.lower_bound.bytes > min(found.wanted.values(), default=0):
        least, around = found.lower_bound.bytes, sum(found.around.values())
        yield (
            f"no: the step does not fit {found.budget}: the proven minimum is {format_bytes(least + around)} of the "
            f"device, {least} bytes of temporaries"
        )
    else:
        stopped = "" if found.finished else "stopped before an answer was found: "
        yield f"{stopped}no: nothing was found with which the step fits {found.budget}: {in_short(found.reason)}"
    yield from _needs(found, found.plain)
    if found.lower_bound is not None:
        yield f"  the proven minimum of temporaries, {format_bytes(found.lower_bound.bytes)}, is held up by"
        yield from (f"    {line}" for line in found.lower_bound.lines())


def _needs(found: Fit, peaks: Mapping[str, int]) -> Iterator[str]:
    """What each function needs with these peaks."""
    for name, after in peaks.items():
        before, around = found.plain[name], found.around[name]
        change = format_bytes(before) if after == before else f"{format_bytes(before)} -> {format_bytes(after)}"
        yield (
            f"  @{name} needs {format_bytes(after + around)} of the device {found.by}: temporaries {change}, "
            f"arguments and results {format_bytes(around)}"
        )
