"""A rewrite within a memory budget: plan, rewrite, measure, and plan again.

In program order (`program_order.py`) the solvers plan with proven bounds, and plan again with a lower budget where the
CSE after copying extends live ranges. The model of XLA:CPU sees a program in another order, so plans of all kinds are
forecast, and the cheapest of those that should fit are rewritten until one does. The choice without a budget is taken
where it fits and is cheaper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from xdsl.dialects.builtin import ModuleOp

from ...analysis.step.functions import functions_of
from ...options.loop_schedule import Loops
from ...options.recompute_options import RecomputeOptions
from ...planning.picking import Picking
from ...planning.plan import Plan
from ...planning.solvers.result import Stop
from ...support.diagnostics import Refusal, Remark
from ...transforms.plans.counted import ORDER
from ..pools import pool_of
from .limit import ERROR, Budget, allowed
from .loop_choices import loops_option
from .program_order import in_program_order
from .written import Budgeted, O, Run, Written

ROUNDS = 6
"""Maximum number of rewrites."""


def by_model(one: Budgeted[O]) -> Written[O]:
    """Raises `Refusal`."""
    pool, asked = pool_of(one.module, one.options, one.stop), one.allowed
    written = dict[int, Written[O]]()
    plain = 1.0, asked.share(asked.plain)
    limit = 0.0 if asked.wanted is None else 1.0
    picking = Picking([plan.foreseen for plan in pool], limit, plain)

    def needed(at: int) -> float | None:
        if written and one.stop():
            return None
        try:
            written[at] = one.written(pool[at].plans, pool[at].loops)
        except Refusal:
            return None
        return asked.share(written[at].peaks)

    best = picking.run(needed, ROUNDS)
    if asked.wanted is None:
        best = picking.least
    if best is None:
        raise Refusal(one.module, _not_reached(one, [done.peaks for done in written.values()]))
    return written[best]


def _not_reached(one: Budgeted[O], reached: Sequence[Mapping[str, int]]) -> str:
    words = f"no plan keeps the budget {one.asked} {one.budget.by}, {ERROR}"
    if not reached:
        return f"{words}: nothing can be recomputed"
    least = min(reached, key=one.allowed.share)
    needed = ", ".join(f"{least[name]}" for name in one.allowed.plain)
    return f"{words}: best of {len(reached)} candidates: {needed} bytes (no lower bound is known)"


@dataclass(frozen=True)
class Within(Generic[O]):
    """A module that keeps the budget, None where the step stays as it is, what was done, and what is said of it.

    `loops`: which of them the plans are for.
    """

    module: ModuleOp | None
    outcome: O
    peaks: Mapping[str, int]
    remarks: tuple[Remark, ...]
    loops: Loops


def within_budget(module: ModuleOp, budget: Budget, options: RecomputeOptions, run: Run[O], stop: Stop) -> Within[O]:
    """`run` leaves the module as it is. Raises `Refusal`, with the proven minimum where there is one."""
    asked = allowed(module, budget)
    one = Budgeted(module, budget, run, asked, options, stop)
    if asked.is_kept:
        if not options.selection.segment_budgets:
            return _nothing(one)
        if one.is_kept(alone := one.written(None)):
            return Within(alone.module, alone.outcome, alone.peaks, (_kept(one, alone),), alone.loops)
    found = in_program_order(one) if budget.model == ORDER else by_model(one)
    return Within(found.module, found.outcome, found.peaks, (_kept(one, found),), found.loops)


def _nothing(one: Budgeted[O]) -> Within[O]:
    done = one.written(lambda _: Plan(), False)
    needed = ", ".join(f"{peak} bytes" for peak in one.allowed.plain.values())
    said = f"nothing to do: the step needs {needed} at its peak {one.budget.by}, within the budget {one.asked}"
    return Within(None, done.outcome, done.peaks, (_remark(one, said),), False)


def _kept(one: Budgeted[O], done: Written[O]) -> Remark:
    before, after = one.allowed.plain, done.peaks
    peaks = ", ".join(f"{before[name]} -> {after[name]}" for name in before)
    model = one.budget.by if one.budget.model == ORDER else f"{one.budget.by}, {ERROR}"
    extra = f"{done.outcome.copies} operations run again, {done.outcome.extra_flops} FLOPs more"
    loops = "" if done.loops == one.options.loops else f", with {loops_option(done.loops)}"
    return _remark(one, f"budget {one.asked}: {peaks} bytes at the peak {model}; {extra}{loops}")


def _remark(one: Budgeted[O], said: str) -> Remark:
    return Remark(functions_of(one.module)[0], said)
