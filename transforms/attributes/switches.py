"""Propagate the switches of a segment to its operations.

A switch is a boolean attribute from MindSpore's interface. `mp_comm_recompute`, for example, determines whether
collectives in the segment may run twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, UnitAttr
from xdsl.ir import Attribute, BlockArgument, Operation

from ...dialects.names import Names
from ...dialects.result_marks import decided_mark
from ...rules.effects import HIDDEN_STATE, is_collective
from ...support.operations import name_of

_GATHERS = frozenset({"stablehlo.all_gather"})


def switches_in(attributes: Mapping[str, Attribute]) -> dict[str, bool]:
    """Return the switches that the attributes of a segment set, by attribute name."""
    stated = ((name, attributes.get(name)) for name in _SWITCHES)
    return {name: bool(value.value.data) for name, value in stated if isinstance(value, IntegerAttr)}


_SWITCHES = (
    Names.MP_COMM_RECOMPUTE,
    Names.PARALLEL_OPTIMIZER_COMM_RECOMPUTE,
    Names.SLICE_ACTIVATION,
    Names.PRESERVE_RNG_STATE,
)


def propagate_switches(operations: Iterable[Operation], switches: Mapping[str, bool]) -> None:
    """Write the switches of a segment as attributes on its operations, without replacing existing attributes."""
    for op in operations:
        if switches.get(Names.SLICE_ACTIVATION):
            op.attributes.setdefault(Names.SLICE_ACTIVATION, BoolAttr.from_bool(True))
        allowed = _may_repeat(op, switches)
        if allowed:
            op.attributes.setdefault(Names.REPEATABLE, UnitAttr())
        elif allowed is False:
            op.attributes.setdefault(Names.RECOMPUTE, decided_mark([False]))


def _may_repeat(op: Operation, switches: Mapping[str, bool]) -> bool | None:
    """Return whether the switches allow the operation to run twice; None if no switch applies to it."""
    if is_collective(op):
        of_parameters = name_of(op) in _GATHERS and any(map(_derives_from_argument, op.operands))
        kind = Names.PARALLEL_OPTIMIZER_COMM_RECOMPUTE if of_parameters else Names.MP_COMM_RECOMPUTE
        return switches.get(kind)
    if name_of(op) in HIDDEN_STATE and switches.get(Names.PRESERVE_RNG_STATE) is False:
        return True
    return None


def _derives_from_argument(value: object) -> bool:
    """Return whether the value is an argument, or derived from one by operations with one operand, such as casts and
    reshapes."""
    while not isinstance(value, BlockArgument):
        owner = getattr(value, "owner", None)
        if not isinstance(owner, Operation) or len(owner.operands) != 1 or owner.regions or is_collective(owner):
            return False
        value = owner.operands[0]
    return True
