"""Side effects of operations, including outlined calls; effects keep their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import CallOp
from xdsl.ir import Operation

from ...rules.effects import PURE_IF_BODY_IS, why_impure
from ...rules.names import name_of
from ...support.walk import every_operation
from .bodies import LeftInlined
from .places import Place, Positions


@dataclass(frozen=True)
class Effects:
    """`pure`: calls of functions without effects. All other calls count as effects."""

    pure: set[Operation] = field(default_factory=set[Operation])

    def has_effect(self, op: Operation) -> bool:
        return any(map(self._has_own_effect, every_operation(op)))

    def _has_own_effect(self, op: Operation) -> bool:
        if isinstance(op, CallOp):
            return op not in self.pure
        if op.regions and name_of(op) in PURE_IF_BODY_IS:
            return False  # `has_effect` checks the operations in its regions too
        return why_impure(op) is not None

    def demand_order(self, members: Sequence[Operation], place: Place, positions: Positions) -> None:
        """Raise `LeftInlined` if effects would be reordered when `members` become a call at the place."""
        if not any(map(self.has_effect, (*members, *place.behind))):
            return
        inside = set(members)
        end = max(positions.of[op] for op in (place.before, *members))
        current: Operation | None = min(members, key=positions.of.__getitem__)
        while current is not None and positions.of[current] < end:
            if current not in inside and self.has_effect(current):
                raise LeftInlined("an effect stands between its operations")
            current = current.next_op
