"""recompute-shard-kept: shard the values saved for a segment over the devices of a mesh until they are read.

    %x1 = recompute.depend %x after %0          %k = sdy.sharding_constraint %x <@mesh, [{?}, {"model", ?}]>
                                          ->    %x1 = recompute.depend %k after %0

The pass applies to segments with `recompute.recompute_slice_activation`, a switch of MindSpore. The forward pass
continues to read `%x`; copies gather their operands. The pass does not use mesh axes that already shard the batch
dimension, which is the first dimension of an argument with as many rows as the value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, ShapedType, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..analysis.step.order import functions_of
from ..dialects.names import Names
from ..dialects.recompute import DependOp
from ..dialects.sdy.axes import Sharding
from ..dialects.sdy.sharding_lookup import SHARDING
from ..dialects.sdy.sharding_ops import MeshOp, ShardingConstraintOp
from ..dialects.sdy.sharding_text import parse_sharding
from ..dialects.sdy.shardings import ShardingAttr
from ..support.operations import every_operation
from ..support.remarks import Remark, tell

NO_MESH = "recompute_slice_activation has no effect: the module has no mesh with several devices"
INSIDE = "recompute_slice_activation has no effect in loops and in per-device functions (shard_map)"
NOT_DIVISIBLE = "the value is saved unsharded: no free axis of the mesh divides any of its dimensions after the first"


@dataclass(frozen=True)
class _MeshAxes:
    """The symbol of a mesh, and the sizes of its axes that have more than one device."""

    symbol: str
    axes: Mapping[str, int]


def shard_kept(module: ModuleOp, per_device: Collection[FuncOp] = ()) -> list[Remark]:
    """Shard the saved values that copies in segments with `recompute_slice_activation` read.

    Args:
        module: The module, which is changed in place.
        per_device: The functions that are outlined per-device bodies. Values in these functions must not be sharded
            over a mesh.

    Returns:
        Remarks on values that are saved unsharded.
    """
    remarks = list[Remark]()
    for function in functions_of(module):
        operations = every_operation(function)
        segments = {op.attributes.get(Names.SEGMENT) for op in operations if _requests_sharding(op)}
        if not segments:
            continue
        mesh = _mesh_of(module)
        if mesh is None or function in per_device:
            remarks.append(Remark(next(filter(_requests_sharding, operations)), INSIDE if mesh else NO_MESH))
            continue
        sharded = dict[SSAValue, SSAValue]()
        for value, depend, index in list(_saved_operands(operations, segments)):
            if value not in sharded:
                sharding = _sharding_for(value, function, mesh)
                sharded[value] = value if sharding is None else _insert_constraint(value, sharding)
                remarks.extend([Remark(_owner(value), NOT_DIVISIBLE)] if sharding is None else [])
            depend.operands[index] = sharded[value]
    return remarks


def _requests_sharding(op: Operation) -> bool:
    switch = op.attributes.get(Names.SLICE_ACTIVATION)
    return switch is not None and isinstance(switch, IntegerAttr) and bool(switch.value.data)


def _mesh_of(module: ModuleOp) -> _MeshAxes | None:
    """Return the first mesh with more than one device; None if there is none."""
    for op in module.ops:
        if isinstance(op, MeshOp):
            axes = {name: size for name, size in op.mesh.axes().items() if size > 1}
            if axes:
                return _MeshAxes(op.sym_name.data, axes)
    return None


def _saved_operands(
    operations: Sequence[Operation], segments: set[Attribute | None]
) -> Iterator[tuple[SSAValue, DependOp, int]]:
    """Yield each saved value that copies in these segments read, with the `recompute.depend` that delays the value and
    the index of its operand.

    Arguments are left out, because they are live in any case.
    """
    for op in operations:
        for index, (value, delayed) in enumerate(
            zip(op.values, op.delayed, strict=True) if isinstance(op, DependOp) else ()
        ):
            readers = {use.operation.attributes.get(Names.SEGMENT) for use in delayed.uses}
            if not isinstance(value, BlockArgument) and readers & segments:
                assert isinstance(op, DependOp)
                yield value, op, index


def _owner(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation), "only results of operations are sharded"
    return value.owner


def _sharding_for(value: SSAValue, function: FuncOp, mesh: _MeshAxes) -> ShardingAttr | None:
    """Return a sharding of one dimension over all free axes, or else over one of them; None if no dimension is
    divisible."""
    shape = _shape(value)
    free = [axis for axis in mesh.axes if axis not in _axes_in_use(value, shape, function)]
    for axes in filter(None, (free, *([axis] for axis in free))):
        size = prod(mesh.axes[axis] for axis in axes)
        for dimension in range(1, len(shape)):
            if shape[dimension] % size == 0:
                quoted = ", ".join(f'"{axis}"' for axis in axes)
                dimensions = [f"{{{quoted}, ?}}" if index == dimension else "{?}" for index in range(len(shape))]
                return ShardingAttr(f"@{mesh.symbol}, [{', '.join(dimensions)}]")
    return None


def _shape(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if isinstance(value.type, ShapedType) else ()


def _axes_in_use(value: SSAValue, shape: Sequence[int], function: FuncOp) -> set[str]:
    """Return the axes that already shard the value, or a batch with the same number of rows."""
    names = set[str]()
    for index, argument in enumerate(function.body.block.args):
        sharding = _sharding_of_argument(function, index)
        if sharding is not None and sharding.dimensions and _shape(argument)[:1] == shape[:1]:
            names.update(axis.name for axis in sharding.dimensions[0].axes)
    while isinstance(maker := value.owner, ShardingConstraintOp):
        names.update(axis.name for axis in parse_sharding(maker.sharding.data).all_axes())
        value = maker.input
    return names


def _sharding_of_argument(function: FuncOp, index: int) -> Sharding | None:
    """Return the sharding of an argument; None if it has none."""
    if function.arg_attrs is None:
        return None
    sharding = function.arg_attrs.data[index].data.get(SHARDING)
    return parse_sharding(sharding.data) if isinstance(sharding, ShardingAttr) else None


def _insert_constraint(value: SSAValue, sharding: ShardingAttr) -> SSAValue:
    maker = _owner(value)
    constraint = ShardingConstraintOp.create(
        operands=[value],
        result_types=[value.type],
        properties={"sharding": sharding},
        attributes={Names.SHARDS_KEPT: UnitAttr()},
    )
    constraint.location = maker.location
    if isinstance(segment := maker.attributes.get(Names.SEGMENT), StringAttr):
        constraint.attributes[Names.SEGMENT] = segment
    Rewriter.insert_op(constraint, InsertPoint.after(maker))
    return constraint.result


@dataclass(frozen=True)
class ShardKeptPass(ModulePass):
    name = "recompute-shard-kept"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tell(ctx, shard_kept(op))
