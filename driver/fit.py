"""Decide whether a step fits a memory budget: unchanged, with recomputation and at which extra work, or not.

    recompute.fit(text, "8GiB").fits

The step is rewritten as by `recompute{budget=…}`, and its peak and its work are counted on the result. The lower bounds
on the work and on the temporaries are proved in program order. A refusal is proved if a lower bound on the temporaries,
or the arguments and results alone, exceed the budget; otherwise the answer is that no plan was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from xdsl.dialects.builtin import ModuleOp

from ..analysis.explain.executed_flops import executed_flops
from ..analysis.step.descriptions import describe_operation
from ..analysis.step.order import functions_of
from ..analysis.step.step import Step
from ..options.loop_schedule import Loops, LoopSchedule
from ..options.memory_model import ORDER
from ..options.recompute_options import RecomputeOptions
from ..planning.solvers.effort import Effort
from ..planning.solvers.incumbent import Incumbent, silent
from ..planning.solvers.problem import Problem
from ..planning.solvers.result import Progress, Result, Stop, never
from ..planning.solvers.solve_graph import problem_of_graph
from ..planning.solvers.solvers_by_name import solve
from ..planning.solvers.working_set import largest_working_set
from ..planning.two_point_bound import TwoPointBound, two_point_bound
from ..rewriting.rewrite import rewrite_within
from ..search.budget.limits import Budget, BudgetLimits, budget_limits
from ..support.diagnostics import Refusal
from ..support.units import MINIMUM, budget_text, format_bytes, readable_bytes
from ..transforms.phase import numbered_steps
from ..transforms.preparation.prepare import prepare
from ..transforms.preparation.timelines import flat, timelines_of
from .api import HasText, as_module
from .verified import verify_module

MAX_LISTED = 10


@dataclass(frozen=True)
class LowerBound:
    """A proven lower bound on the temporaries of every plan, and the operation and values that determine it.

    Attributes:
        bytes: The lower bound.
        operation: The operation at the bound, with its source line.
        values: The values that are live there, with their bytes, the largest first, at most ten.
        unlisted_count: The number of further values.
        spanning_value: A value that a later operation reads, and that is either live here or recomputed right after
            this operation; empty if the operation itself needs all of `values`.
    """

    bytes: int
    operation: str
    values: tuple[tuple[str, int], ...]
    unlisted_count: int
    spanning_value: str = ""

    def lines(self) -> Iterator[str]:
        """Yield a line for the operation, then a line for each value."""
        yield f"while {self.operation} executes"
        if self.spanning_value:
            yield self.spanning_value
        for value, size in self.values:
            yield f"{format_bytes(size):>10}  {value}"
        if self.unlisted_count:
            yield f"and {self.unlisted_count} more"


def lower_bound(step: Step) -> LowerBound:
    """Return the larger of two bounds: the largest working set of an operation (`planning/solvers/working_set.py`), and
    the bound of two operations with a value between them (`planning/two_point_bound.py`)."""
    problem = problem_of_graph(step.graph)
    least = largest_working_set(problem)
    over = two_point_bound(problem)
    if over.bytes > least.bytes:
        return _between_two(step, problem, over)
    at = "the end of the step" if least.operation is None else operation_text(step, least.operation)
    values = tuple((_value(step, problem, v), int(problem.sizes[v])) for v in least.values[:MAX_LISTED])
    return LowerBound(least.bytes, at, values, len(least.values) - len(values))


def _between_two(step: Step, problem: Problem, over: TwoPointBound) -> LowerBound:
    """Describe the bound of two operations with a value that the second one reads."""
    maker, reader = operation_text(step, int(problem.maker[over.value])), operation_text(step, over.reader)
    since = f"with {maker}, which {reader} reads later: kept or recomputed in between, whichever needs less memory"
    values = sorted({*problem.reads_of(over.before), *problem.makes_of(over.before)}, key=lambda v: -problem.sizes[v])
    listed = tuple((_value(step, problem, v), int(problem.sizes[v])) for v in values[:MAX_LISTED])
    return LowerBound(over.bytes, operation_text(step, over.before), listed, max(0, len(values) - MAX_LISTED), since)


def _value(step: Step, problem: Problem, value: int) -> str:
    """Name the value, with its number if its operation makes several."""
    op = int(problem.maker[value])
    made = problem.makes_of(op)
    return f"{operation_text(step, op)} #{value - made.start}" if len(made) > 1 else operation_text(step, op)


def operation_text(step: Step, op: int) -> str:
    """Describe operation number `op` and its result for a message: `stablehlo.tanh %h (train.py:41:9)`.

    Parts that the program lacks are left out."""
    return describe_operation(step.operation(op))


class Verdict(Enum):
    """The answer to whether a step fits.

    Attributes:
        AS_IT_IS: It fits unchanged.
        RECOMPUTED: It fits with recomputation.
        NOT_FOUND: No plan was found, and none is proved impossible.
        NO: It is proved that no plan is within the budget.
    """

    AS_IT_IS = "yes"
    RECOMPUTED = "with recomputation"
    NOT_FOUND = "not found"
    NO = "no"


@dataclass(frozen=True)
class Fit:
    """The answer to whether a step fits a budget. Bytes are given for each function, by its name.

    Attributes:
        budget: The budget as text.
        memory_model: The description of the memory model.
        verdict: Whether the step fits, unchanged or with recomputation.
        plain: Temporaries of the unchanged step in bytes.
        argument_and_result_bytes: Bytes of arguments and results on the device.
        limits: Bytes of temporaries that the budget allows.
        peaks: Temporaries of the rewritten step in bytes; empty if it does not fit.
        copies: The number of recomputed operations.
        extra_percent: The extra FLOPs in percent of the FLOPs of the step.
        bound_percent: The proven lower bound on the extra FLOPs, in percent; None without one.
        loops: The option `loops` with which loops were cut for that bound; None if the step has no such loops.
        reason: The reason that the step does not fit, or that no plan was found; "" if it fits.
        lower_bound: The proven lower bound on the temporaries in program order; None for a step of several blocks.
        finished: Whether the search was completed. If not, less work may suffice, and a refusal proves nothing.
    """

    budget: str
    memory_model: str
    verdict: Verdict
    plain: Mapping[str, int]
    argument_and_result_bytes: Mapping[str, int]
    limits: Mapping[str, int]
    peaks: Mapping[str, int]
    copies: int = 0
    extra_percent: float = 0.0
    bound_percent: float | None = None
    loops: Loops | None = None
    reason: str = ""
    lower_bound: LowerBound | None = None
    finished: bool = True

    @property
    def fits(self) -> bool:
        """Whether a plan within the budget was found."""
        return self.verdict in (Verdict.AS_IT_IS, Verdict.RECOMPUTED)

    @property
    def minimum_bytes(self) -> int | None:
        """The proven lower bound on the bytes on the device, in program order; None without one."""
        return (
            None if self.lower_bound is None else self.lower_bound.bytes + sum(self.argument_and_result_bytes.values())
        )


def fit(
    step: ModuleOp | str | HasText,
    memory: str | float,
    model: str = ORDER,
    stop: Stop = never,
    effort: Effort | None = None,
    progress: Progress = silent,
) -> Fit:
    """Decide whether a step fits a memory budget.

    Args:
        step: A module, which is left unchanged, its text, or the result of `jax.jit(f).lower(...)`.
        memory: The budget: bytes of the device (`8GiB` or an int), or a share of the temporaries (`50%` or 0.5).
        model: The memory model, `order` or `xla`.
        stop: A predicate that ends the search with the best result so far.
        effort: The effort of the search for the lower bound; brief by default.
        progress: A function that is called with each phase of the search.

    Returns:
        The verdict, with the bytes, the extra work and the lower bounds.

    Raises:
        TypeError: For a step of another type.
        ParseError: For text that is not MLIR.
        Refusal: For a module without a gradient or with dynamic shapes.
        ValueError: For an invalid budget.
    """
    module = as_module(step)
    verify_module(module)
    return _fit(module, budget_text(memory), model, _Search(stop, effort or Effort.brief(), progress))


@dataclass(frozen=True)
class _Search:
    """The control of a search: see `fit`."""

    stop: Stop
    effort: Effort
    progress: Progress


def _fit(module: ModuleOp, text: str, model: str, search: _Search) -> Fit:
    budget = Budget.of(text, model, "stablehlo")
    if text.lower() == MINIMUM:
        raise ValueError("invalid budget 'min': a fit needs bytes ('8GiB') or a share ('50%')")
    search.progress("counting the bytes of the plain step")
    lines = dict(timelines_of(module, budget.model))
    plain = {name: timeline.peak_bytes for name, timeline in lines.items()}
    around = {name: timeline.device_bytes - timeline.peak_bytes for name, timeline in lines.items()}
    single = _single_step(module, True, len(plain), budget.model)
    search.progress("proving a minimum of temporaries")
    bound = lower_bound(single.step) if single is not None and not single.is_cut else None
    unfit = Fit(text, budget.by, Verdict.NO, plain, around, {}, {}, lower_bound=bound)
    try:
        limits = budget_limits(module, budget)
    except Refusal as error:
        return replace(unfit, reason=error.reason)
    if limits.is_kept:
        return replace(unfit, verdict=Verdict.AS_IT_IS, limits=limits.limit_bytes or {}, peaks=plain)
    if bound is not None and bound.bytes > min((limits.limit_bytes or {}).values(), default=0):
        reason = f"no plan needs less than {readable_bytes(bound.bytes)} of temporaries"
        return replace(unfit, limits=limits.limit_bytes or {}, reason=reason)
    return _fit_recomputed(module, budget, unfit, limits, search)


@dataclass(frozen=True)
class _SingleStep:
    """A step that is planned as one block.

    Attributes:
        extra: The FLOPs and operations that cutting its loops adds.
        is_cut: Whether loops were cut.
    """

    step: Step
    extra: int
    is_cut: bool


def _single_step(module: ModuleOp, loops: Loops | LoopSchedule, functions: int, model: str) -> _SingleStep | None:
    """Return the only step, as one block to solve.

    None if the module has several steps or the memory model proves no bounds.
    """
    prepared = prepare(module, RecomputeOptions(loops=loops))
    steps = numbered_steps(prepared.module)
    if len(steps) != 1 or functions != 1 or prepared.inside or model != ORDER:
        return None
    rolled = prepared.rolled
    return _SingleStep(steps[0][1], rolled.extra_flops + rolled.copies, rolled.copies > 0)


def _fit_recomputed(module: ModuleOp, budget: Budget, unfit: Fit, limits: BudgetLimits, search: _Search) -> Fit:
    limit_bytes, stop = limits.limit_bytes or {}, search.stop
    search.progress(f"looking for a plan within {budget.text}")
    try:
        result = rewrite_within(module, budget, stop=stop)
    except Refusal as error:
        return replace(unfit, verdict=Verdict.NOT_FOUND, limits=limit_bytes, reason=error.reason, finished=not stop())
    fit_result = replace(
        unfit,
        verdict=Verdict.RECOMPUTED,
        limits=limit_bytes,
        peaks=result.peaks,
        copies=result.outcome.copies,
        extra_percent=100 * result.outcome.extra_flops / max(1, plain_flops(module)),
        finished=not stop(),
    )
    single = _single_step(module, result.loops, len(limit_bytes), budget.model)
    if single is None:
        return fit_result
    plain = _single_step(module, False, len(limit_bytes), budget.model)
    assert plain is not None, "loops that are left as they are make no other blocks"
    # Problems count one more for each execution, so that an operation without FLOPs is not free.
    # The cost of a loop is that of one iteration; the cost of its repeated operations is that of all iterations.
    total = max(problem_of_graph(plain.step.graph).total_cost, plain_flops(module))
    percent = 100 * (result.outcome.extra_flops + result.outcome.copies) / max(1, total)
    search.progress("proving a minimum of extra work")
    problem = problem_of_graph(single.step.graph)
    bound = 100 * (single.extra + _bound(problem, next(iter(limit_bytes.values())), search)) / max(1, total)
    loops = (
        result.loops.option if single.is_cut or plain.step.graph.fingerprint != single.step.graph.fingerprint else None
    )
    return replace(fit_result, extra_percent=percent, bound_percent=min(bound, percent), loops=loops)


def plain_flops(module: ModuleOp) -> int:
    """Return the FLOPs of the plain step, with all iterations of counted loops."""
    operations = [op for function in functions_of(flat(module)) for block in function.body.blocks for op in block.ops]
    return sum(map(executed_flops, operations))


def _bound(problem: Problem, budget: int, search: _Search) -> float:
    """Return the proven lower bound on the extra cost. `budget`: bytes of temporaries."""
    solved = solve(problem, budget, best=Incumbent(problem, budget, interrupt=search.stop), effort=search.effort)
    return solved.bound_percent / 100 * problem.total_cost if isinstance(solved, Result) else 0.0
