"""The part of a step that runs on one device, for reports. In this part, each value has the shape of its shard.

    %0 = stablehlo.sine %x : tensor<2048x64xf32>     sharded over 8 devices     ->     tensor<256x64xf32>

Shardy's own pass, which is part of JAX, propagates the shardings of arguments and constraints through the step, as it
does in the compiler. The new shapes serve only to count bytes and FLOPs, and are never compiled. Attributes stay
unchanged, and so still describe whole arrays.
"""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from ....dialects.sdy.axes import Sharding
from ....dialects.sdy.sharding_lookup import mesh_of, sharding_of
from ....dialects.sdy.sharding_ops import DataFlowEdgeOp
from ....dialects.stablehlo.control import WhileOp
from ....driver.verification.step_input import as_module
from ....support.operations import every_operation
from ....support.type_guards import is_tensor
from ....transforms.preparation.timelines import flat_copy
from ..bridge import crossing
from ..internals import private


class NotPropagated(Exception):
    """Raised if shardings cannot be propagated, because the installed JAX lacks the passes, or because they fail or
    change operations."""


def part_of_a_device(module: ModuleOp) -> ModuleOp:
    """Return an inlined copy of the module in which values have the shapes of their shards.

    `module`: the step, with or without calls that mark values. It is left unchanged. Raises `NotPropagated`.
    """
    copy = flat_copy(as_module(module))
    propagated = private.propagate_shardings(crossing.to_mlir(copy))
    if propagated is None:
        raise NotPropagated(f"{private.PROPAGATION}: the installed JAX lacks these passes, or they failed")
    sharded = crossing.from_mlir(propagated, "the propagated step")
    operations = every_operation(copy)
    sharded_operations = [op for op in every_operation(sharded) if not isinstance(op, DataFlowEdgeOp)]
    if [op.name for op in operations] != [op.name for op in sharded_operations]:
        raise NotPropagated(
            f"{private.PROPAGATION}: the passes have added or removed operations, so the shards of values are unknown"
        )
    for op, sharded_op in zip(operations, sharded_operations, strict=True):
        for value, other in zip(_values_of(op), _sharded_like(sharded_op), strict=True):
            _take_shard(value, other)
    for op in operations:
        if isinstance(op, FuncOp):
            _state_types(op)
    return copy


def bytes_per_device(devices: int) -> str:
    """Return the note that bytes and FLOPs are counted for one device."""
    return f"bytes and FLOPs: per device, of {devices} devices"


def whole_bytes(devices: int) -> str:
    """Return the note that the bytes of values are counted for whole arrays."""
    return f"bytes of values: of all {devices} devices together, since JAX does not report the part of each device"


def _values_of(op: Operation) -> list[SSAValue]:
    """Return the results of the operation and the arguments of its blocks."""
    return [*op.results, *(argument for region in op.regions for block in region.blocks for argument in block.args)]


def _sharded_like(op: Operation) -> list[SSAValue]:
    """Return a value with the same sharding for each of the values that `_values_of` returns.

    For an argument of a loop's region, this is the corresponding result of the loop. For any other value, it is the
    value itself.
    """
    if isinstance(op, WhileOp):
        return [*op.results, *(result for region in op.regions for result in op.results[: len(region.block.args)])]
    return _values_of(op)


def _take_shard(value: SSAValue, sharded: SSAValue) -> None:
    """Set the type of the value to the type of its shard. `sharded`: the same value in the module with shardings."""
    sharding = sharding_of(sharded)
    if sharding is None or not is_tensor(value.type):
        return
    if (shape := _shard_shape(value.type, sharding, sharded)) is not None:
        Rewriter.replace_value_with_new_type(value, TensorType(value.type.get_element_type(), shape))


def _shard_shape(type_: Any, sharding: Sharding, value: SSAValue) -> list[int] | None:
    """Return the shape of a shard, rounded up as the compiler pads; None if the mesh is unknown."""
    owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    mesh = None if owner is None else mesh_of(owner, sharding.mesh)
    if mesh is None or mesh.is_maximal() or len(sharding.dimensions) != len(type_.get_shape()):
        return None
    parts = [prod(axis.length(mesh) for axis in dimension.axes) for dimension in sharding.dimensions]
    return [-(-size // part) if size >= 0 else size for size, part in zip(type_.get_shape(), parts, strict=True)]


def _state_types(function: FuncOp) -> None:
    """Update the type of a function to match the types of its arguments and returned values."""
    block = function.body.blocks[0] if function.body.blocks else None
    if block is not None and block.last_op is not None:
        inputs, outputs = block.arg_types, [value.type for value in block.last_op.operands]
        function.function_type = FunctionType.from_lists(list(inputs), outputs)
