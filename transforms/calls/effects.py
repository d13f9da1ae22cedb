"""Which operations have effects, when some of them are calls that have come back; effects keep their order."""

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
    """`pure`: calls of functions without effects. What is not known of a call is an effect."""

    pure: set[Operation] = field(default_factory=set[Operation])

    def has_effect(self, op: Operation) -> bool:
        return any(map(self._has_own_effect, every_operation(op)))

    def _has_own_effect(self, op: Operation) -> bool:
        if isinstance(op, CallOp):
            return op not in self.pure
        if op.regions and name_of(op) in PURE_IF_BODY_IS:
            return False  # what is in its regions is asked too
        return why_impure(op) is not None

    def demand_order(self, members: Sequence[Operation], place: Place, positions: Positions) -> None:
        """Raises `LeftInlined` where an effect would pass another one when `members` become a call at the place."""
        if not any(map(self.has_effect, (*members, *place.behind))):
            return
        inside = set(members)
        end = max(positions.of[op] for op in (place.before, *members))
        current: Operation | None = min(members, key=positions.of.__getitem__)
        while current is not None and positions.of[current] < end:
            if current not in inside and self.has_effect(current):
                raise LeftInlined("an effect stands between its operations")
            current = current.next_op
