"""Compute the extra cost of plans and the cost of the plain step, in the unit of the cost that planners minimize."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..analysis.step.step import Step, Steps
from ..dialects.placements import is_offload
from ..rules.costs.cost import Cost
from ..support.remarks import Remark, RemarkKind
from ..support.units import format_percent
from ..transforms.plans.cloned_steps import ClonedStep


def cost_remarks(steps: Steps, cloned: Iterable[ClonedStep], cost: Cost) -> Iterator[Remark]:
    """Yield a remark on the extra cost of each step, or nothing if the cost is FLOPs (the default).

    The caller must exhaust the iterator before the steps change.
    """
    functions = {function.sym_name.data: function for function, _ in steps}
    costs = {function.sym_name.data: _without_moves(step) for function, step in steps}
    for clone_of_step in cloned if not cost.is_default else ():
        each = costs[clone_of_step.function]
        total = sum(each)
        extra = clone_of_step.plan.extra_cost(each)
        share = f", {format_percent(100 * extra / total)}% of the cost of the step" if total else ""
        yield Remark(
            functions[clone_of_step.function],
            f"extra cost by {cost.name}: {extra / cost.scale:.4g} {cost.unit}{share}",
            RemarkKind.ANALYSIS,
        )


def plain_cost(step: Step, which: Sequence[bool]) -> int:
    """Return the total cost of selected operations of the plain step. Moves to the host cost nothing.

    `which`: for each operation, whether its cost is included.
    """
    return sum(cost for cost, counts in zip(_without_moves(step), which, strict=True) if counts)


def _without_moves(step: Step) -> Sequence[int]:
    """Return the cost of each operation in the plain step. Moves to the host that planners may choose have cost 0."""
    costs = zip(step.numbered.operations, step.graph.cost, strict=True)
    return [0 if is_offload(op) else cost for op, cost in costs]
