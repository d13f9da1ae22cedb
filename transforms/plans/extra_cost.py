"""What a plan costs by what was asked for, where that is not FLOPs, which every plan says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp

from ...analysis.step.step import Step
from ...dialects.diagnostics import Refusal, Remark
from ...dialects.placements import is_offload
from ...rules.costs.cost import BadCost, Cost, cost_named
from ..clone import Done
from ..phase import Steps


def asked_cost(module: ModuleOp, said: str) -> Cost:
    """Raises `Refusal` at the module for what is no cost."""
    try:
        return cost_named(said)
    except BadCost as error:
        raise Refusal(module, str(error)) from error


def said_of_costs(steps: Steps, done: Iterable[Done], cost: Cost) -> Iterator[Remark]:
    """A remark for each step; none for FLOPs. Before the steps are changed: they name the functions."""
    functions = {function.sym_name.data: function for function, _ in steps}
    costs = {function.sym_name.data: _without_moves(step) for function, step in steps}
    for one in done if not cost.is_default else ():
        each = costs[one.function]
        total, extra = sum(each), one.plan.extra_cost(each)
        share = f", {extra / total:.2%} of the step's" if total else ""
        yield Remark(functions[one.function], f"cost by {cost.said}: {extra / cost.scale:.4g} {cost.unit} again{share}")


def plain_cost(step: Step, which: Sequence[bool]) -> int:
    """Of these operations, without moves."""
    return sum(cost for cost, counts in zip(_without_moves(step), which, strict=True) if counts)


def _without_moves(step: Step) -> Sequence[int]:
    """The cost of each operation; what is offered to be fetched the plain step does not do."""
    costs = zip(step.numbered.operations, step.graph.cost, strict=True)
    return [0 if is_offload(op) else cost for op, cost in costs]
