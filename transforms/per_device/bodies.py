"""Rebuild a per-device body with other operands, results and operations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.computations import ManualComputationOp
from ...dialects.shardings import ShardingPerValueAttr


def is_stand_in(op: Operation) -> bool:
    """Whether `op` is a placeholder for operations that are outlined meanwhile; reports skip it."""
    if isinstance(op, ManualComputationOp):
        return isinstance(op.body.block.first_op, UnrealizedConversionCastOp)
    return isinstance(op, UnrealizedConversionCastOp)


def rebuild(
    op: ManualComputationOp,
    operands: Sequence[tuple[SSAValue, str]],
    results: Sequence[tuple[Attribute, str]],
    block: Block,
) -> ManualComputationOp:
    """Insert a body before `op`, on its devices; operands and result types come with their shardings."""
    rebuilt = ManualComputationOp.create(
        operands=[value for value, _ in operands],
        result_types=[type_ for type_, _ in results],
        properties={
            "in_shardings": ShardingPerValueAttr(tuple(sharding for _, sharding in operands)),
            "out_shardings": ShardingPerValueAttr(tuple(sharding for _, sharding in results)),
            "manual_axes": op.manual_axes,
        },
        attributes=dict(op.attributes),
        regions=[Region(block)],
    )
    rebuilt.location = op.location
    parent = op.parent
    assert parent is not None, "the body stands in a block"
    parent.insert_op_before(rebuilt, op)
    return rebuilt


def replace_results(op: ManualComputationOp, indices: Sequence[int], rebuilt: ManualComputationOp) -> None:
    """Redirect uses of these results of `op` to the first results of `made`."""
    for index, new in zip(indices, rebuilt.results, strict=False):
        new.name_hint = op.results[index].name_hint
        op.results[index].replace_all_uses_with(new)


def move(operations: Sequence[Operation], into: Block) -> None:
    """Move operations to the end of another block."""
    for op in operations:
        op.detach()
        into.add_op(op)
