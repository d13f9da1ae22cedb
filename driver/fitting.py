"""Will it fit: whether a step keeps a budget as it is, or with recomputation and at what extra work, or not, and what
holds it up.

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
from ..analysis.step.functions import functions_of
from ..analysis.step.step import Step
from ..dialects.diagnostics import Refusal
from ..options.loop_schedule import Loops
from ..options.recompute_options import RecomputeOptions
from ..planning.solvers.effort import Effort
from ..planning.solvers.incumbent import Incumbent
from ..planning.solvers.of_graph import problem_of_graph
from ..planning.solvers.problem import Problem
from ..planning.solvers.registry import solve
from ..planning.solvers.result import Result, never
from ..rules.flops import flops
from ..search.budget.limit import Allowed, Budget, allowed
from ..search.prepare import prepare
from ..search.recompute import recomputed_within
from ..support.units import MINIMUM, budget_text
from ..transforms.phase import numbered_steps
from ..transforms.plans.counted import ORDER, flat, timelines_of
from .api import as_module
from .held_up import HeldUp, held_up
from .verification import verify_module

Stop = Callable[[], bool]
"""Asked now and then whether to end with what there is."""


class Verdict(Enum):
    AS_IT_IS = "yes"
    RECOMPUTED = "with recomputation"
    NO = "no"


@dataclass(frozen=True)
class Fit:
    """`plain`, `wanted`, `peaks`: temporaries of each function as it is, as the budget allows, as written (empty for a
    no). `around`: what arguments and results add on the device. `extra_percent`: FLOPs more; `bound_percent`: of which
    so much is proved to be needed, None where nothing is, with loops that are cut as `loops` says (None: the step has
    none). `reason`: of a no, in words. `held_up`: what no plan in program order can do without, where all is planned as
    one block. `finished`: False where the search was stopped, so that less work may do, and a no means little."""

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
    held_up: HeldUp | None = None
    finished: bool = True

    @property
    def fits(self) -> bool:
        return self.verdict is not Verdict.NO

    @property
    def minimum_bytes(self) -> int | None:
        """Of the device, proved for the step in program order; None where nothing is."""
        return None if self.held_up is None else self.held_up.bytes + sum(self.around.values())


def fit(
    step: ModuleOp | str,
    memory: str | float,
    model: str = ORDER,
    stop: Stop = never,
    effort: Effort | None = None,
) -> Fit:
    """`step`: a module, which stays as it is, or its text. `memory`: `8GiB` of the device, or that number of bytes; a
    share such as `50%` or 0.5. `model`: order or xla. `effort`: for the bound, brief if none is given. Once it is to
    `stop`, the answer is the best so far.

    Raises `ParseError` for text that is no MLIR, `Refusal` for a module that no budget speaks of (no gradient, dynamic
    shapes), `ValueError` for no budget."""
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
    held = held_up(whole.step) if whole is not None and not whole.is_cut else None
    none = Fit(text, budget.by, Verdict.NO, plain, around, {}, {}, held_up=held)
    try:
        asked = allowed(module, budget)
    except Refusal as error:
        return replace(none, reason=error.reason)
    if asked.is_kept:
        return replace(none, verdict=Verdict.AS_IT_IS, wanted=asked.wanted or {}, peaks=plain)
    return _recomputed(module, budget, none, asked, stop, effort)


@dataclass(frozen=True)
class _Whole:
    """A step that is planned as one block, after its loops were cut: FLOPs and operations that this takes more."""

    step: Step
    extra: int
    is_cut: bool


def _whole(module: ModuleOp, loops: Loops, functions: int, model: str) -> _Whole | None:
    """None where several blocks are planned, or nothing is proved in the model."""
    prepared = prepare(module, RecomputeOptions(loops=loops))
    steps = numbered_steps(prepared.module)
    if len(steps) != 1 or functions != 1 or prepared.inside or model != ORDER:
        return None
    rolled = prepared.rolled
    return _Whole(steps[0][1], rolled.extra_flops + rolled.copies, rolled.copies > 0)


def _recomputed(module: ModuleOp, budget: Budget, none: Fit, asked: Allowed, stop: Stop, effort: Effort) -> Fit:
    wanted = asked.wanted or {}
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
    """Of every execution: what loops run again is said for all iterations, too."""
    operations = [op for one in functions_of(flat(module)) for block in one.body.blocks for op in block.ops]
    return sum(flops(op) * (loop.trips if (loop := counted_loop(op)) else 1) for op in operations)


def _bound(problem: Problem, budget: int, stop: Stop, effort: Effort) -> float:
    """The least extra cost, proved."""
    found = solve(problem, budget, best=Incumbent(problem, budget, interrupt=stop), effort=effort)
    return found.bound_percent / 100 * problem.total_cost if isinstance(found, Result) else 0.0
