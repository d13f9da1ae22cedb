"""Check that the collectives in an operation may be repeated.

    func.func { stablehlo.while (8 times) { sdy.manual_computation { stablehlo.all_reduce } } }

A collective may be repeated only if all devices execute it equally often and in the same order. This condition is met
in functions, in per-device bodies, and in loops with a constant trip count. It may be violated in a branch, or in a
loop with a data-dependent trip count.
"""

from __future__ import annotations

from enum import StrEnum

from xdsl.ir import Operation

from ...dialects.sdy.computations import ManualComputationOp
from ...rules.effects import Permission, is_collective, why_body_impure, why_impure, works_on_memory
from ...support.operations import every_operation, name_of
from .counted_loops import counted_loop


def has_other_effects(op: Operation) -> bool:
    """Return whether the operation has effects other than collectives that all devices execute equally often."""
    if why_impure(op) is None:
        return False
    if is_collective(op):
        return works_on_memory(op) or why_body_impure(op) is not None
    if not _keeps_devices_alike(op):
        return True
    return any(has_other_effects(inner) for region in op.regions for block in region.blocks for inner in block.ops)


class CollectivesInside(StrEnum):
    """A reason that an operation with collectives in its regions must not run twice, with its text for messages.

    Attributes:
        NOT_ALLOWED: The option `collectives` does not allow it.
        UNEQUAL: Devices may execute the collectives a different number of times.
    """

    NOT_ALLOWED = "it contains collectives, and collectives are recomputed only with collectives=true"
    UNEQUAL = (
        "it contains collectives inside a branch or a loop of unknown length: devices may execute them a different "
        "number of times, so it is never recomputed"
    )


def why_not_repeatable(op: Operation, permission: Permission) -> str | None:
    """Return the reason that the operation must not run twice, or None if it may.

    It is assumed that all devices execute the operation itself equally often and in the same order.
    """
    reason = permission.why_not(op)
    if reason is None or not op.regions or is_collective(op) or not holds_collective(op):
        return reason
    if _keeps_devices_alike(op) and not has_other_effects(op):
        return None if permission.collectives else CollectivesInside.NOT_ALLOWED
    operations = every_operation(op)
    if any(map(_may_separate_devices, operations)):
        return CollectivesInside.UNEQUAL
    impure = next((inner for inner in operations if not inner.regions and has_other_effects(inner)), None)
    return reason if impure is None else f"it contains {name_of(impure)}: {why_impure(impure)}"


def holds_collective(op: Operation) -> bool:
    """Return whether the operation is a collective, or contains one at any depth."""
    return any(map(is_collective, every_operation(op)))


def _may_separate_devices(op: Operation) -> bool:
    """Return whether the operation contains collectives that devices need not execute equally often."""
    return bool(op.regions) and not is_collective(op) and not _keeps_devices_alike(op) and holds_collective(op)


def _keeps_devices_alike(op: Operation) -> bool:
    return isinstance(op, ManualComputationOp) or counted_loop(op) is not None
