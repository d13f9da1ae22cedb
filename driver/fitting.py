"""Will it fit: whether a step keeps a budget as it is, or with recomputation and at what extra work, or not, and what
holds it up.

The answer is what `recompute{budget=…}` would write, counted as written; the bound beside it, and the minimum that a
refusal names, are proved in program order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from xdsl.dialects.builtin import ModuleOp

from ..analysis.request.selection import AUTO
from ..analysis.step.counted_loops import counted_loop
from ..analysis.step.functions import functions_of
from ..analysis.step.step import Step
from ..dialects.diagnostics import Refusal
from ..planning.solvers.auto import Effort
from ..planning.solvers.of_graph import problem_of_graph
from ..planning.solvers.problem import Problem
from ..planning.solvers.registry import solve
from ..planning.solvers.result import Result
from ..rules.flops import flops
from ..transforms.phase import numbered_steps
from ..transforms.plans.budget import Allowed, Budget, allowed
from ..transforms.plans.counted import ORDER, flat, timelines_of
from ..transforms.plans.prepared import Prepared, prepare
from ..transforms.recompute import recomputed_within
from .held_up import HeldUp, held_up


class Verdict(Enum):
    AS_IT_IS = "yes"
    RECOMPUTED = "with recomputation"
    NO = "no"


@dataclass(frozen=True)
class Fit:
    """`plain`, `wanted`, `peaks`: temporaries of each function as it is, as the budget allows, as written (empty for a
    no). `around`: what arguments and results add on the device. `percent`: FLOPs more; `bound_percent`: of which so
    much is proved to be needed, None where nothing is. `reason`: of a no, in words. `held_up`: where all is planned as
    one block."""

    budget: str
    by: str
    verdict: Verdict
    plain: Mapping[str, int]
    around: Mapping[str, int]
    wanted: Mapping[str, int]
    peaks: Mapping[str, int]
    copies: int = 0
    percent: float = 0.0
    bound_percent: float | None = None
    reason: str = ""
    held_up: HeldUp | None = None


def fit(module: ModuleOp, text: str, model: str = ORDER, effort: Effort | None = None) -> Fit:
    """`text`: a budget such as `8GiB`, of the device, or `50%`. `model`: order or xla. `effort`: for the bound,
    brief if none is given. The module stays as it is.

    Raises `Refusal` for a module that no budget speaks of (no gradient, dynamic shapes), `ValueError` for no budget."""
    budget = Budget.of(text, model, "stablehlo")
    if text.strip().lower() == "min":
        raise ValueError("'min' is no number of bytes: ask whether the step fits 8GiB, or 50%")
    lines = dict(timelines_of(module, budget.model))
    plain = {name: one.peak_bytes for name, one in lines.items()}
    around = {name: one.device_bytes - one.peak_bytes for name, one in lines.items()}
    prepared = prepare(module, AUTO)
    steps = [step for _, step in numbered_steps(prepared.module)]
    try:
        asked = allowed(module, budget)
    except Refusal as error:
        return Fit(text, budget.by, Verdict.NO, plain, around, {}, {}, reason=error.reason)
    if asked.is_kept:
        return Fit(text, budget.by, Verdict.AS_IT_IS, plain, around, asked.wanted or {}, plain)
    return _recomputed(module, budget, prepared, steps, asked, around, effort or Effort.brief())


def _recomputed(
    module: ModuleOp,
    budget: Budget,
    prepared: Prepared,
    steps: list[Step],
    asked: Allowed,
    around: Mapping[str, int],
    effort: Effort,
) -> Fit:
    wanted = asked.wanted or {}
    whole = steps[0] if len(steps) == 1 and not prepared.rolled.copies and len(wanted) == 1 else None
    try:
        found = recomputed_within(module, budget)
    except Refusal as error:
        held = held_up(whole) if whole is not None and budget.model == ORDER else None
        return Fit(
            budget.text, budget.by, Verdict.NO, asked.plain, around, wanted, {}, reason=error.reason, held_up=held
        )
    percent, bound = 100 * found.outcome.extra_flops / max(1, _flops(module)), None
    if whole is not None and budget.model == ORDER:
        problem = problem_of_graph(whole.graph)
        # Costs of problems are one more for each execution, so that what costs nothing is not free.
        percent = problem.percent(found.outcome.extra_flops + found.outcome.copies)
        bound = _bound(problem, next(iter(wanted.values())), percent, effort)
    return Fit(
        budget.text,
        budget.by,
        Verdict.RECOMPUTED,
        asked.plain,
        around,
        wanted,
        found.peaks,
        found.outcome.copies,
        percent,
        bound,
    )


def _flops(module: ModuleOp) -> int:
    """Of every execution: what loops run again is said for all iterations, too."""
    operations = [op for one in functions_of(flat(module)) for block in one.body.blocks for op in block.ops]
    return sum(flops(op) * (loop.trips if (loop := counted_loop(op)) else 1) for op in operations)


def _bound(problem: Problem, budget: int, percent: float, effort: Effort) -> float:
    found = solve(problem, budget, effort=effort)
    return min(found.bound_percent, percent) if isinstance(found, Result) else 0.0
