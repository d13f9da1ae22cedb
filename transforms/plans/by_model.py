"""A budget by the model of XLA:CPU, which sees another program than program order: plans of all kinds are foreseen, and
the cheapest of those that are foreseen to fit are carried out until one does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialects.diagnostics import Refusal
from ...planning.picking import Picking
from .budget import ERROR
from .pools import pool_of
from .written import Budgeted, O, Written

ROUNDS = 6
"""So many are carried out at most."""


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
    return f"{words}: of {len(reached)} that were written the least needs {needed} bytes; nothing is proved"
