"""Values that may be moved to the host between the forward pass and their gradient, and why others must not be."""

from __future__ import annotations

from collections.abc import Set

from xdsl.ir import Operation, SSAValue

from ...dialects.placements import is_placement
from ...rules.buffers import is_view
from ...support.operations import name_of
from ...support.phase import Phase
from ...support.type_guards import is_tensor
from .phases import Phases

NOT_A_TENSOR = "'offload' has no effect here: only tensors of StableHLO are moved to the host"
CONSTANT = "'offload' has no effect here: constant expressions need no memory"
NOT_FORWARD = "'offload' has no effect here: only values that the forward pass computes on the device are moved"
UNPLACED = (
    "'offload' has no effect here: an earlier operation with unknown effects may have placed the value outside device "
    "memory"
)
NOT_READ = "'offload' has no effect here: no gradient operation reads the value"
_PLACED = frozenset({"stablehlo", "chlo", "sdy"})
"""The dialects whose tensors can be moved to the host."""


def why_not_moved(
    value: SSAValue,
    phases: Phases,
    constant: Set[SSAValue] = frozenset(),
    unplaced: Set[SSAValue] = frozenset(),
) -> str | None:
    """Return the reason why a value stays in device memory; None if it can be moved.

    Args:
        value: The value.
        phases: The phases of the step.
        constant: The values of the step that are computed only from constants.
        unplaced: The values of the step whose memory space is unknown.
    """
    if value in constant:
        return CONSTANT
    op = value.owner
    if not isinstance(op, Operation) or not phases.is_forward(op) or is_placement(op):
        return NOT_FORWARD
    if not is_tensor(value.type) or name_of(op).partition(".")[0] not in _PLACED:
        return NOT_A_TENSOR
    if value in unplaced:
        return UNPLACED
    return None if _is_read_late(value, phases) else NOT_READ


def _is_read_late(value: SSAValue, phases: Phases) -> bool:
    """Return whether a gradient operation reads the value, directly or through residual operations and views."""
    return any(
        phases.is_gradient(reader)
        or (
            (is_view(reader) or phases.phase[reader] is Phase.RESIDUAL)
            and any(_is_read_late(result, phases) for result in reader.results)
        )
        for reader in phases.order.readers(value)
    )
