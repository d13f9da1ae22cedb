"""What exchanges values between devices and does nothing else, where all devices come alike.

    func.func { stablehlo.while (8 times) { sdy.manual_computation { stablehlo.all_reduce } } }

A collective may stand where it stands, or run in another loop as well, as long as all devices come there equally often
and in the same order: in functions, bodies per device, and loops that run so many times on each. In a branch, or in a
loop that ends when a value says so, they need not.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ...dialects.computations import ManualComputationOp
from ...rules.effects import why_body_impure, why_impure, works_on_memory
from ...rules.kinds import is_collective
from ...rules.names import name_of
from ...rules.permission import Permission
from ...support.walk import every_operation
from .counted_loops import counted_loop


def has_other_effects(op: Operation) -> bool:
    """Whether it does more than to compute, and to exchange what all devices bring alike."""
    if why_impure(op) is None:
        return False
    if is_collective(op):
        return works_on_memory(op) or why_body_impure(op) is not None
    if not _is_alike(op):
        return True
    return any(has_other_effects(inner) for region in op.regions for block in region.blocks for inner in block.ops)


WITH_COLLECTIVES = "it holds collectives, which run again with collectives=true only"
NOT_ALIKE = (
    "it holds collectives, and devices need not come alike to a branch, or to a loop of unknown length: what is inside "
    "never runs again"
)


def why_not_again(op: Operation, permission: Permission) -> str | None:
    """Why running it twice is not allowed, where all devices come alike; None where it is."""
    reason = permission.why_not(op)
    if reason is None or not op.regions or is_collective(op) or not holds_collective(op):
        return reason
    if _is_alike(op) and not has_other_effects(op):
        return None if permission.collectives else WITH_COLLECTIVES
    unlike = next((one for one in every_operation(op) if _is_unlike(one)), None)
    if unlike is not None:
        return NOT_ALIKE
    other = next((one for one in every_operation(op) if not one.regions and has_other_effects(one)), None)
    return reason if other is None else f"{name_of(other)} in it: {why_impure(other)}"


def holds_collective(op: Operation) -> bool:
    """Whether it is one, or holds one at some depth."""
    return any(map(is_collective, every_operation(op)))


def all_come_alike(block: Block) -> bool:
    """Whether all devices come to the block equally often, and in the same order."""
    around = block.parent_op()
    while around is not None and not isinstance(around, FuncOp):
        if not _is_alike(around):
            return False
        around = around.parent_op()
    return True


def _is_unlike(op: Operation) -> bool:
    """Whether it holds collectives to which devices need not come alike."""
    return bool(op.regions) and not is_collective(op) and not _is_alike(op) and holds_collective(op)


def _is_alike(op: Operation) -> bool:
    return isinstance(op, ManualComputationOp) or counted_loop(op) is not None
