"""Determine whether a step fits a memory budget unchanged and, if not, how much extra work makes it fit.

    recompute.fit(text, "8GiB").fits

The step is rewritten as by `recompute{budget=…}`, and the peak and the FLOPs of the result are computed. The lower
bounds on the extra FLOPs and on the temporaries are proved in program order. A refusal is proved if the lower bound on
the temporaries exceeds the budget, or if the arguments and results alone exceed it. Otherwise the answer is only that
no plan was found.

XLA compiles a step that JAX lowered, and may need less or more memory than program order. Therefore, a refusal of such
a step is proved only if the lower bound exceeds the budget by more than the measured error of program order, and the
answer `yes` adds that the compiled step may need less or more memory. For a step on several devices, the model counts
whole arrays instead of shards, so no budget is refused.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from ...analysis.step.devices import PARTITIONS, devices_of
from ...analysis.step.module_steps import numbered_steps
from ...analysis.step.step import Step
from ...mlir_io.printer import print_module
from ...options.loop_schedule import Loops, LoopSchedule
from ...options.memory_model import ORDER
from ...options.recompute_options import RecomputeOptions
from ...planning.solvers.effort import Effort
from ...planning.solvers.incumbent import Incumbent, ignore_progress
from ...planning.solvers.problem import Problem
from ...planning.solvers.result import Progress, Result, Stop, never_stop
from ...planning.solvers.solve_graph import problem_of_graph
from ...planning.solvers.solvers_by_name import solve
from ...rewriting.rewrite import search_within
from ...rules.traits import is_declared_pure
from ...search.limits import ORDER_ERROR_FACTOR, Budget, BudgetLimits, budget_limits
from ...search.loop_choices import has_loops
from ...search.outcome import RewriteResult
from ...search.prepare import prepare
from ...support.diagnostics import Refusal
from ...support.operations import every_operation, name_of
from ...support.suggestions import suggests_keywords
from ...support.units import MINIMUM, budget_text, readable_bytes
from ...transforms.preparation.timelines import timelines_of
from ...transforms.rolled.joined_branches import has_several_conditionals
from ..cache.cache_keys import cache_key
from ..inspection.queries import step_flops
from ..verification.step_input import StepInput, as_module
from ..verification.verified import verify_module
from .fit_answer import Fit as Fit
from .fit_answer import Verdict as Verdict
from .lower_bound import LowerBound, lower_bound

MAX_ANSWERS = 64
"""The maximum number of answers to store in a process. A repeated question needs no search. The least recently used
answer is dropped first."""
_ANSWERS: OrderedDict[str, Fit] = OrderedDict()


@suggests_keywords("recompute.fit")
def fit(
    step: StepInput,
    memory: str | float,
    model: str = ORDER,
    stop: Stop = never_stop,
    effort: Effort | None = None,
    progress: Progress = ignore_progress,
) -> Fit:
    """Decide whether a step fits a memory budget.

    Args:
        step: A module of xDSL or of MLIR's Python bindings, its text, or the result of `jax.jit(f).lower(...)`. It is
            left unchanged.
        memory: The budget: bytes of the device (`8GiB` or an int), or a share of the temporaries (`50%` or 0.5).
        model: The memory model, `order` or `xla`.
        stop: A predicate that ends the search with the best result so far.
        effort: The time that the search for the lower bound on the extra work may take; brief by default.
        progress: A function that is called with the name of each phase of the search.

    Returns:
        The verdict, with the bytes, the extra work and the lower bounds. If the same arguments are given again in one
        process, the stored answer is returned, unless `stop` is given.

    Raises:
        TypeError: For a step of an unsupported type.
        ParseError: For text that is not MLIR.
        Refusal: For a module without a gradient or with dynamic shapes.
        ValueError: For an invalid budget.
    """
    module, text = as_module(step), budget_text(memory)
    verify_module(module)
    search = _SearchControls(stop, effort or Effort.brief(), progress)
    # A search that may be stopped early must not replace, or be replaced by, the answer of a complete search.
    # The text does not contain the traits of operations.
    pure = sorted({name_of(op) for op in every_operation(module) if is_declared_pure(op)})
    key = cache_key("fit", print_module(module, debuginfo=True), pure, text, model, search.effort)
    if key is None or stop is not never_stop:
        return _fit(module, text, model, search)
    if key not in _ANSWERS:
        _ANSWERS[key] = _fit(module, text, model, search)
        if len(_ANSWERS) > MAX_ANSWERS:
            _ANSWERS.popitem(last=False)
    _ANSWERS.move_to_end(key)
    return _ANSWERS[key]


@dataclass(frozen=True)
class _SearchControls:
    """The options that control a search, as described in `fit`."""

    stop: Stop
    effort: Effort
    progress: Progress


def _fit(module: ModuleOp, text: str, model: str, search: _SearchControls) -> Fit:
    budget = Budget.of(text, model, "stablehlo")
    if text.lower() == MINIMUM:
        raise ValueError("invalid budget 'min': expected a limit in bytes ('8GiB') or a share ('50%')")
    search.progress("counting the bytes of the plain step")
    lines = dict(timelines_of(module, budget.model))
    plain = {name: timeline.peak_bytes for name, timeline in lines.items()}
    around = {name: timeline.device_bytes - timeline.peak_bytes for name, timeline in lines.items()}
    devices = devices_of(module)
    single = _single_step(module, True, len(plain), budget.model) if devices == 1 else None
    search.progress("proving a minimum of temporaries")
    bound = lower_bound(single.step) if single is not None and not single.is_cut else None
    unfit = Fit(
        budget=text,
        memory_model=budget.model_phrase,
        verdict=Verdict.NO,
        plain=plain,
        argument_and_result_bytes=around,
        limits={},
        peaks={},
        lower_bound=bound,
        devices=devices,
        is_lowered_by_jax=PARTITIONS in module.attributes,
    )
    try:
        limits = budget_limits(module, budget)
    except Refusal as error:
        return replace(unfit, verdict=Verdict.NO if devices == 1 else Verdict.NOT_FOUND, reason=error.reason)
    if limits.is_within_budget:
        return replace(unfit, verdict=Verdict.AS_IT_IS, limits=limits.limit_bytes or {}, peaks=plain)
    if bound is not None and bound.bytes > min((limits.limit_bytes or {}).values(), default=0):
        reason = f"no plan needs less than {readable_bytes(bound.bytes)} of temporaries in program order"
        verdict = _verdict_of_bound(module, bound, limits)
        answer = replace(unfit, verdict=verdict, limits=limits.limit_bytes or {}, reason=reason)
    else:
        answer = _fit_recomputed(module, budget, unfit, limits, search)
    return _with_smallest_plan(module, budget, answer, search) if answer.verdict is Verdict.NOT_FOUND else answer


def _with_smallest_plan(module: ModuleOp, budget: Budget, answer: Fit, search: _SearchControls) -> Fit:
    """Return an inconclusive answer, completed with the temporaries of the smallest plan that a search finds."""
    if search.stop():
        return answer
    search.progress("looking for the plan with the fewest temporaries")
    try:
        result = search_within(module, replace(budget, text=MINIMUM), stop=search.stop)
    except Refusal:
        return answer
    return replace(answer, smallest_peaks=result.peaks)


def _verdict_of_bound(module: ModuleOp, bound: LowerBound, limits: BudgetLimits) -> Verdict:
    """Return the verdict for a lower bound in program order that exceeds the limit."""
    error = ORDER_ERROR_FACTOR if PARTITIONS in module.attributes else 1
    return Verdict.NO if bound.bytes > error * min((limits.limit_bytes or {}).values()) else Verdict.NOT_FOUND


@dataclass(frozen=True)
class _SingleStep:
    """A step that is planned as one block.

    Attributes:
        extra: The FLOPs and operations that cutting the loops of the step adds.
        is_cut: Whether loops were cut.
    """

    step: Step
    extra: int
    is_cut: bool


def _single_step(module: ModuleOp, loops: Loops | LoopSchedule, functions: int, model: str) -> _SingleStep | None:
    """Return the step of the module as one block for which a solver can prove bounds; None if there is no such block.

    There is none if the module has several steps, or if the memory model proves no bounds. There is also none if a
    rewrite may divide conditionals, because the bounds are valid only for whole conditionals.
    """
    if has_several_conditionals(module):
        return None
    prepared = prepare(module, RecomputeOptions(loops=loops))
    steps = numbered_steps(prepared.module)
    if len(steps) != 1 or functions != 1 or prepared.outlined.functions or model != ORDER:
        return None
    rolled = prepared.rolled
    return _SingleStep(steps[0][1], rolled.extra_flops + rolled.copies, rolled.copies > 0)


def _fit_recomputed(module: ModuleOp, budget: Budget, unfit: Fit, limits: BudgetLimits, search: _SearchControls) -> Fit:
    """Search for a rewrite within the budget. Return the answer for a step that does not fit unchanged."""
    limit_bytes, stop = limits.limit_bytes or {}, search.stop
    search.progress(f"looking for a plan within {budget.text}")
    try:
        result = search_within(module, budget, stop=stop)
    except Refusal as error:
        reason = error.reason
        if unfit.lower_bound is None and has_loops(module):
            reason = (
                "the loops can be rewritten in several ways, and no minimum is proved for all of them; "
                f"the last way that was tried: {reason}"
            )
        return replace(unfit, verdict=Verdict.NOT_FOUND, limits=limit_bytes, reason=reason, finished=not stop())
    fit_result = replace(
        unfit,
        verdict=Verdict.RECOMPUTED,
        limits=limit_bytes,
        peaks=result.peaks,
        copies=result.outcome.copies,
        extra_percent=100 * result.outcome.extra_flops / max(1, step_flops(module)),
        finished=not stop(),
    )
    single = _single_step(module, result.loops, len(limit_bytes), budget.model) if unfit.devices == 1 else None
    return fit_result if single is None else _with_bound_on_work(module, fit_result, result, single, search)


def _with_bound_on_work(
    module: ModuleOp, fitting: Fit, result: RewriteResult, single: _SingleStep, search: _SearchControls
) -> Fit:
    """Return the answer with a proven lower bound on the extra work.

    Args:
        module: The plain module.
        fitting: The answer without the bound.
        result: The rewrite within the budget.
        single: The only step of the module, with its loops cut as in the rewrite.
        search: The options that control the search.
    """
    plain = _single_step(module, False, len(fitting.limits), ORDER)
    assert plain is not None, "with unchanged loops, the module has no more blocks than with cut loops"
    plain_graph, graph = plain.step.graph, single.step.graph
    # A problem adds one to the FLOPs of each execution, so that an operation without FLOPs is not free.
    # The cost of a loop is counted for one iteration; the cost of its repeated operations, for all iterations.
    total = max(1, problem_of_graph(plain_graph).total_cost, step_flops(module))
    percent = 100 * (result.outcome.extra_flops + result.outcome.copies) / total
    search.progress("proving a minimum of extra work")
    bound_of_plans = _bound(problem_of_graph(graph), next(iter(fitting.limits.values())), search)
    bound_percent = 100 * (single.extra + bound_of_plans) / total
    has_loops = single.is_cut or plain_graph.fingerprint != graph.fingerprint
    loops = result.loops.option if has_loops else None
    return replace(fitting, extra_percent=percent, bound_percent=min(bound_percent, percent), loops=loops)


def _bound(problem: Problem, budget: int, search: _SearchControls) -> float:
    """Return a proven lower bound on the extra cost of every plan within a budget. `budget`: bytes of temporaries."""
    solved = solve(problem, budget, best=Incumbent(problem, budget, interrupt=search.stop), effort=search.effort)
    return solved.bound_percent / 100 * problem.total_cost if isinstance(solved, Result) else 0.0
