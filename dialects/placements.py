"""Moves of values between device and host memory, in the form that JAX emits and XLA reads.

    %h = stablehlo.custom_call @annotate_device_placement(%x) {
             has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}}
    %d = stablehlo.custom_call @annotate_device_placement(%h) { … {_xla_buffer_placement = "device"}}

Both calls return their operand. `%h` is in host memory and takes up no device memory. JAX lowers
`jax.device_put(x, jax.memory.Space.Host)` to this form for GPU and TPU; for CPU it emits nothing.

Moves that this project inserts have the attribute `recompute.offload`. No other moves may be recomputed.
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
_ALLOWED = frozenset({"call_target_name", "has_side_effect"})


def is_placement(op: Operation) -> TypeGuard[CustomCallOp]:
    """Return whether the operation is a custom call that only moves its operand to the memory that it names."""
    return (
        isinstance(op, CustomCallOp)
        and op.call_target_name.data == TARGET
        and len(op.operands) == 1
        and [value.type for value in op.operands] == [value.type for value in op.results]
        and placement_of(op) is not None
        and op.properties.keys() <= _ALLOWED
        and all(name == FRONTEND or name.startswith(Names.PREFIX) for name in op.attributes)
    )


def placement_of(op: CustomCallOp) -> str | None:
    """Return JAX's name of the target memory; None if the call names none, or has further frontend attributes."""
    frontend = op.attributes.get(FRONTEND)
    if not isinstance(frontend, DictionaryAttr) or set(frontend.data) != {PLACEMENT}:
        return None
    kind = frontend.data[PLACEMENT]
    return kind.data if isinstance(kind, StringAttr) else None


def placed_in(kind: str) -> DictionaryAttr:
    """Return the frontend attributes that name `kind` as the target memory."""
    return DictionaryAttr({PLACEMENT: StringAttr(kind)})


def is_to_host(op: Operation) -> TypeGuard[CustomCallOp]:
    return is_placement(op) and placement_of(op) in ON_HOST


def is_from_host(op: Operation) -> TypeGuard[CustomCallOp]:
    return is_placement(op) and placement_of(op) == DEVICE


def is_offload(op: Operation) -> TypeGuard[CustomCallOp]:
    """Return whether the operation is a move that this project inserted, or a copy of such a move."""
    return is_placement(op) and Names.OFFLOAD in op.attributes


def speed_of(op: Operation) -> int:
    """Return the bandwidth of the move in the cost model, in bytes per second; 0 if the move is free."""
    speed = op.attributes.get(Names.OFFLOAD)
    return speed.value.data if isinstance(speed, IntegerAttr) else 0


def to_host(value: SSAValue, speed: int) -> CustomCallOp:
    return _move(value, HOST, speed)


def to_device(value: SSAValue, speed: int) -> CustomCallOp:
    return _move(value, DEVICE, speed)


def _move(value: SSAValue, kind: str, speed: int) -> CustomCallOp:
    op = CustomCallOp.create(
        operands=[value],
        result_types=[value.type],
        properties={"call_target_name": StringAttr(TARGET), "has_side_effect": BoolAttr.from_bool(True)},
        attributes={FRONTEND: placed_in(kind), Names.OFFLOAD: IntegerAttr(speed, i64)},
    )
    if isinstance(owner := value.owner, Operation):
        op.location = owner.location
        op.attributes.update({name: owner.attributes[name] for name in _INHERITED if name in owner.attributes})
    op.results[0].name_hint = value.name_hint
    return op


_INHERITED = (Names.SEGMENT, Names.PHASE)
"""Attributes that a move takes from the operation whose result it moves."""
