"""A rewrite that keeps a budget as it is written: planned, carried out, counted, and planned again for less."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..dialects.diagnostics import Refusal
from ..planning.graph import Graph
from ..planning.plan import Plan
from ..transforms.clone import Planner

if TYPE_CHECKING:
    from .api import Rewritten

ROUNDS = 4
"""So often what was written is above the budget before that is said."""


def rewrite_within(budget: str, rewritten: Callable[[Planner], Rewritten]) -> Rewritten:
    """Merging what is the same, after the copies are in, can have it live longer than planned: by what is then above
    the budget less is asked for. Raises `Refusal`, and `ValueError` for what is no budget."""
    # The solvers bring numba along, where it is installed: only who asks waits for it.
    from ..planning.solvers.budgets import budget_bytes
    from ..planning.solvers.of_graph import bytes_within, plan_within

    budget_bytes(budget, 1)
    allowed, less = dict[str, int](), 0
    reached: Refusal | None = None

    def planner(graph: Graph) -> Plan:
        wanted = allowed.setdefault(graph.fingerprint, bytes_within(graph, budget))
        return plan_within(graph, wanted - less)

    for _ in range(ROUNDS):
        done = rewritten(planner)
        needed = {name: after.peak_bytes for name, (_, after) in done.memory().items()}
        over = [needed[one.function] - allowed[one.graph] for one in done.plans if one.graph in allowed]
        if max(over, default=0) <= 0:
            return done
        less += max(over)
        reached = Refusal(
            done.module, f"no plan keeps the budget of {budget} as it is written: {max(over)} bytes above"
        )
    assert reached is not None, "there is at least one round"
    raise reached
