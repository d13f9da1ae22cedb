"""Operations that the user allows to be recomputed although they are not functions of their operands."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from ..dialects.names import Names
from .effects import ON_MEMORY, why_body_impure, why_impure, works_on_memory
from .kinds import is_collective
from .names import name_of

# They draw from a state that is not an operand.
HIDDEN_STATE = frozenset({"stablehlo.rng"})


@dataclass(frozen=True)
class Permission:
    """What may be recomputed. A single operation is permitted by its attribute `recompute.repeatable`.

    Attributes:
        collectives: Collectives may be recomputed, on new channels, on all devices alike: MindSpore's
            `mp_comm_recompute`.
        preserve_rng_state: False lets unseeded random operations draw again, other numbers: the results change
            (PyTorch's and Paddle's option of this name).
    """

    collectives: bool = False
    preserve_rng_state: bool = True

    def why_not(self, op: Operation) -> str | None:
        """The reason that the operation may not be recomputed; None if it may."""
        is_declared = Names.REPEATABLE in op.attributes
        if (self.collectives or is_declared) and is_collective(op):
            # The permission covers the communication, but not other effects.
            return ON_MEMORY if works_on_memory(op) else why_body_impure(op)
        if (is_declared or not self.preserve_rng_state) and name_of(op) in HIDDEN_STATE:
            return None
        return why_impure(op)


NOTHING = Permission()
