"""Moves between the memory of the device and that of its host, in the form in which JAX writes and XLA reads them.

    %h = stablehlo.custom_call @annotate_device_placement(%x) {
             has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}}
    %d = stablehlo.custom_call @annotate_device_placement(%h) { … {_xla_buffer_placement = "device"}}

Both give back the value that they are given. `%h` lies on the host, and takes none of the device's memory. The form is
that of `jax.device_put(x, jax.memory.Space.Host)`, lowered for GPU or TPU; for CPU JAX writes nothing.

Those that are put in here carry `recompute.offload`, and only these may run again.
"""

from __future__ import annotations

from typing import TypeGuard

from xdsl.dialects.builtin import BoolAttr, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Operation, SSAValue

from .names import Names
from .stablehlo.custom_call import CustomCallOp

TARGET = "annotate_device_placement"
FRONTEND = "mhlo.frontend_attributes"
PLACEMENT = "_xla_buffer_placement"
HOST, DEVICE = "pinned_host", "device"
ON_HOST = frozenset({HOST, "unpinned_host"})
_SAID = frozenset({"call_target_name", "has_side_effect"})


def is_placement(op: Operation) -> TypeGuard[CustomCallOp]:
    """Whether the operation gives its one operand back, in the memory that it names, and nothing else is said of it."""
    return (
        isinstance(op, CustomCallOp)
        and op.call_target_name.data == TARGET
        and len(op.operands) == 1
        and [value.type for value in op.operands] == [value.type for value in op.results]
        and placement_of(op) is not None
        and op.properties.keys() <= _SAID
        and all(name == FRONTEND or name.startswith(Names.PREFIX) for name in op.attributes)
    )


def placement_of(op: CustomCallOp) -> str | None:
    """The kind of memory, as JAX calls it; None where none is named, or more than that."""
    said = op.attributes.get(FRONTEND)
    if not isinstance(said, DictionaryAttr) or set(said.data) != {PLACEMENT}:
        return None
    kind = said.data[PLACEMENT]
    return kind.data if isinstance(kind, StringAttr) else None


def placed_in(kind: str) -> DictionaryAttr:
    """What names the memory."""
    return DictionaryAttr({PLACEMENT: StringAttr(kind)})


def is_to_host(op: Operation) -> TypeGuard[CustomCallOp]:
    return is_placement(op) and placement_of(op) in ON_HOST


def is_from_host(op: Operation) -> TypeGuard[CustomCallOp]:
    return is_placement(op) and placement_of(op) == DEVICE


def is_offload(op: Operation) -> TypeGuard[CustomCallOp]:
    """Whether it was put in here, or is a copy of what was."""
    return is_placement(op) and Names.OFFLOAD in op.attributes


def speed_of(op: Operation) -> int:
    """Bytes per second that the move was reckoned with; 0 where it costs nothing."""
    speed = op.attributes.get(Names.OFFLOAD)
    return speed.value.data if isinstance(speed, IntegerAttr) else 0


def to_host(value: SSAValue, speed: int) -> CustomCallOp:
    return _moved(value, HOST, speed)


def to_device(value: SSAValue, speed: int) -> CustomCallOp:
    return _moved(value, DEVICE, speed)


def _moved(value: SSAValue, kind: str, speed: int) -> CustomCallOp:
    said = {FRONTEND: placed_in(kind), Names.OFFLOAD: IntegerAttr(speed, i64)}
    op = CustomCallOp.create(
        operands=[value],
        result_types=[value.type],
        properties={"call_target_name": StringAttr(TARGET), "has_side_effect": BoolAttr.from_bool(True)},
        attributes=said,
    )
    if isinstance(owner := value.owner, Operation):
        op.location = owner.location
        op.attributes.update({name: owner.attributes[name] for name in _OF_THE_PLACE if name in owner.attributes})
    op.results[0].name_hint = value.name_hint
    return op


_OF_THE_PLACE = (Names.SEGMENT, Names.PHASE)
"""What is said of an operation that is also so of what moves its result."""
