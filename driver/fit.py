"""Decide whether a step fits a memory budget: unchanged, with recomputation and at which extra work, or not.

    recompute.fit(text, "8GiB").fits

The answer is what `recompute{budget=…}` would write, counted as written; the bound beside it, and the minimum that a
refusal names, are proved in program order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from xdsl.dialects.builtin import ModuleOp

from ..analysis.step.counted_loops import counted_loop
from ..analysis.step.order import functions_of
from ..analysis.step.step import Step
from ..options.loop_schedule import Loops
from ..options.recompute_options import RecomputeOptions
from ..planning.solvers.effort import Effort
from ..planning.solvers.incumbent import Incumbent
from ..planning.solvers.problem import Problem
from ..planning.solvers.registry import solve
from ..planning.solvers.result import Result, never
from ..planning.solvers.solve_graph import problem_of_graph
from ..rules.flops import flops
from ..search.budget.limits import Budget, BudgetLimits, budget_limits
from ..search.prepare import prepare
from ..search.recompute import recomputed_within
from ..support.diagnostics import Refusal
from ..support.units import MINIMUM, budget_text
from ..transforms.phase import numbered_steps
from ..transforms.plans.counted import ORDER, flat, timelines_of
from .api import as_module
from .lower_bound import LowerBound, lower_bound
from .verification import verify_module

Stop = Callable[[], bool]
"""A predicate that ends a search with the best result so far."""


class Verdict(Enum):
    AS_IT_IS = "yes"
    RECOMPUTED = "with recomputation"
    NO = "no"


@dataclass(frozen=True)
class Fit:
    """Whether a step fits a budget. Byte counts are temporaries of each function, by its name.

    Attributes:
        budget: The budget as text.
        by: The memory model, in words.
        verdict: Whether it fits, unchanged or with recomputation.
        plain: Bytes of the unchanged step.
        around: Bytes that arguments and results add on the device.
        wanted: Bytes that the budget allows.
        peaks: Bytes of the rewritten step; empty if it does not fit.
        copies: The number of operations that run again.
        extra_percent: Extra FLOPs.
        bound_percent: The proven lower bound on the extra FLOPs, or None.
        loops: How loops were cut for that bound; None if the step has none.
        reason: Why the step does not fit.
        lower_bound: The proven lower bound in program order, if the step is planned as one block.
        finished: False if the search was stopped, so that less work may be possible and a refusal proves nothing.
    """

    budget: str
    by: str
    verdict: Verdict
    plain: Mapping[str, int]
    around: Mapping[str, int]
    wanted: Mapping[str, int]
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
        return self.verdict is not Verdict.NO

    @property
    def minimum_bytes(self) -> int | None:
        """The proven lower bound on device bytes in program order, or None."""
        return None if self.lower_bound is None else self.lower_bound.bytes + sum(self.around.values())


def fit(
    step: ModuleOp | str,
    memory: str | float,
    model: str = ORDER,
    stop: Stop = never,
    effort: Effort | None = None,
) -> Fit:
    """Decide whether a step fits a memory budget.

    Args:
        step: A module, which is left unchanged, or its text.
        memory: `8GiB` of the device, or that number of bytes, or a share of the temporaries such as `50%` or 0.5.
        model: The memory model, `order` or `xla`.
        stop: A predicate that ends the search with the best result so far.
        effort: The effort for the lower bound; brief by default.

    Returns:
        The verdict, with the extra work and the lower bounds.

    Raises:
        ParseError: For text that is no MLIR.
        Refusal: For a module without a gradient or with dynamic shapes.
        ValueError: For an invalid budget.
    """
    module = as_module(step)
    verify_module(module)
    return _fit(module, budget_text(memory), model, stop, effort or Effort.brief())


def _fit(module: ModuleOp, text: str, model: str, stop: Stop, effort: Effort) -> Fit:
    budget = Budget.of(text, model, "stablehlo")
    if text.lower() == MINIMUM:
        raise ValueError("invalid budget 'min': a fit needs bytes ('8GiB') or a share ('50%')")
    lines = dict(timelines_of(module, budget.model))
    plain = {name: one.peak_bytes for name, one in lines.items()}
    around = {name: one.device_bytes - one.peak_bytes for name, one in lines.items()}
    whole = _whole(module, True, len(plain), budget.model)
    held = lower_bound(whole.step) if whole is not None and not whole.is_cut else None
    none = Fit(text, budget.by, Verdict.NO, plain, around, {}, {}, lower_bound=held)
    try:
        asked = budget_limits(module, budget)
    except Refusal as error:
        return replace(none, reason=error.reason)
    if asked.is_kept:
        return replace(none, verdict=Verdict.AS_IT_IS, wanted=asked.bytes or {}, peaks=plain)
    return _recomputed(module, budget, none, asked, stop, effort)


@dataclass(frozen=True)
class _Whole:
    """A step that is planned as one block, and the extra FLOPs and operations of cutting its loops."""

    step: Step
    extra: int
    is_cut: bool


def _whole(module: ModuleOp, loops: Loops, functions: int, model: str) -> _Whole | None:
    """The step as one block; None if there are several, and for a model without bounds."""
    prepared = prepare(module, RecomputeOptions(loops=loops))
    steps = numbered_steps(prepared.module)
    if len(steps) != 1 or functions != 1 or prepared.inside or model != ORDER:
        return None
    rolled = prepared.rolled
    return _Whole(steps[0][1], rolled.extra_flops + rolled.copies, rolled.copies > 0)


def _recomputed(module: ModuleOp, budget: Budget, none: Fit, asked: BudgetLimits, stop: Stop, effort: Effort) -> Fit:
    wanted = asked.bytes or {}
    try:
        found = recomputed_within(module, budget, stop=stop)
    except Refusal as error:
        return replace(none, wanted=wanted, reason=error.reason, finished=not stop())
    done = replace(
        none,
        verdict=Verdict.RECOMPUTED,
        wanted=wanted,
        peaks=found.peaks,
        copies=found.outcome.copies,
        extra_percent=100 * found.outcome.extra_flops / max(1, _flops(module)),
        finished=not stop(),
    )
    whole = _whole(module, found.loops, len(wanted), budget.model)
    if whole is None:
        return done
    plain = _whole(module, False, len(wanted), budget.model)
    assert plain is not None, "loops that are left as they are make no other blocks"
    # Costs of problems are one more for each execution, so that what costs nothing is not free.
    # A loop's own cost is that of one iteration, what it runs again that of all.
    total = max(problem_of_graph(plain.step.graph).total_cost, _flops(module))
    percent = 100 * (found.outcome.extra_flops + found.outcome.copies) / max(1, total)
    problem = problem_of_graph(whole.step.graph)
    bound = 100 * (whole.extra + _bound(problem, next(iter(wanted.values())), stop, effort)) / max(1, total)
    loops = found.loops if whole.is_cut or plain.step.graph.fingerprint != whole.step.graph.fingerprint else None
    return replace(done, extra_percent=percent, bound_percent=min(bound, percent), loops=loops)


def _flops(module: ModuleOp) -> int:
    """The FLOPs of the plain step, all iterations of its loops included."""
    operations = [op for function in functions_of(flat(module)) for block in function.body.blocks for op in block.ops]
    return sum(flops(op) * (loop.trips if (loop := counted_loop(op)) else 1) for op in operations)


def _bound(problem: Problem, budget: int, stop: Stop, effort: Effort) -> float:
    """The proven lower bound on the extra cost."""
    found = solve(problem, budget, best=Incumbent(problem, budget, interrupt=stop), effort=effort)
    return found.bound_percent / 100 * problem.total_cost if isinstance(found, Result) else 0.0
