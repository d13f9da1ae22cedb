"""What the user allows to run a second time though it is no function of its operands."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from ..dialects.names import Names
from .effects import ON_MEMORY, why_body_impure, why_impure, works_on_memory
from .kinds import is_collective
from .names import name_of

# They draw from a state that is nobody's operand.
HIDDEN_STATE = frozenset({"stablehlo.rng"})


@dataclass(frozen=True)
class Permission:
    """collectives: they may be repeated, with channels of their own, on all devices alike: MindSpore's
    `mp_comm_recompute`. preserve_rng_state: False lets unseeded random operations draw again, other numbers: the
    results change (PyTorch's and Paddle's option of this name). An operation may have a permission of its own,
    `recompute.repeatable`.
    """

    collectives: bool = False
    preserve_rng_state: bool = True

    def why_not(self, op: Operation) -> str | None:
        """Why running the operation twice is not allowed; None where it is."""
        stated = Names.REPEATABLE in op.attributes
        if (self.collectives or stated) and is_collective(op):
            # Allowed is the communication, whatever else it may do is not.
            return ON_MEMORY if works_on_memory(op) else why_body_impure(op)
        if (stated or not self.preserve_rng_state) and name_of(op) in HIDDEN_STATE:
            return None
        return why_impure(op)


NOTHING = Permission()
