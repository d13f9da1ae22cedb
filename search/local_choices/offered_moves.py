"""Choose the values that may be moved to the host under a budget: the values with the highest recomputation cost per
byte.

The planners choose among these values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from math import inf

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ...analysis.step.module_steps import steps_of
from ...analysis.step.movable import why_not_moved
from ...analysis.step.order import constants_only
from ...analysis.step.phases import Phases
from ...analysis.step.unplaced import unplaced_values
from ...analysis.step.views import value_bytes
from ...planning.host_moves import Offload
from ...rules.buffers import is_view
from ...rules.costs.cost import cost_named
from ...rules.effects import why_impure
from ...support.units import PICOSECONDS

MIN_MOVED_BYTES = 1 << 12
"""The minimum size, in bytes, of a value that may be moved to the host. A smaller value frees too little to be worth a
transfer."""


def offered_moves(module: ModuleOp, offload: Offload) -> Mapping[FuncOp, Sequence[SSAValue]]:
    """Return, for each step of a flat module, the values that may be moved to the host.

    Raises:
        Refusal: The module has no gradient, or a step is malformed.
    """
    if not offload.share:
        return {}
    offered = dict[FuncOp, Sequence[SSAValue]]()
    for function, phases in steps_of(module):
        excluded = constants_only(phases.order) | unplaced_values(function, phases.order)
        offered[function] = list(_values_to_offer(phases, offload, excluded))
    return offered


def _values_to_offer(phases: Phases, offload: Offload, excluded: Set[SSAValue]) -> Iterator[SSAValue]:
    """Yield the values to offer, in order of decreasing recomputation cost per byte.

    Values that cannot be recomputed come first. The transfers of all values together take at most `offload.share`
    percent of the time of the forward pass.
    """
    operations = phases.order.operations
    costs = dict(zip(operations, cost_named(offload.cost).of(operations), strict=True))
    seconds = sum(cost for op, cost in costs.items() if phases.is_forward(op)) / PICOSECONDS
    bytes_left = seconds * offload.speed * offload.share / 100
    worth = list[tuple[float, SSAValue]]()
    for op in operations:
        # A view is not offered, because the viewed value may be offered itself.
        for value in op.results if not is_view(op) else ():
            if value not in excluded and why_not_moved(value, phases) is None and value_bytes(value) >= MIN_MOVED_BYTES:
                worth.append((inf if why_impure(op) else costs[op] / value_bytes(value), value))
    for _, value in sorted(worth, key=lambda pair: -pair[0]):
        bytes_left -= value_bytes(value)
        if bytes_left >= 0:
            yield value
