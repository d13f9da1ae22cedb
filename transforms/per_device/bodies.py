"""A body per device made anew: on other operands, with other results, holding something else."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.computations import ManualComputationOp
from ...dialects.shardings import ShardingPerValueAttr


def is_stand_in(op: Operation) -> bool:
    """Whether it holds a place for as long as something is worked on elsewhere: nothing is to be said of it."""
    if isinstance(op, ManualComputationOp):
        return isinstance(op.body.block.first_op, UnrealizedConversionCastOp)
    return isinstance(op, UnrealizedConversionCastOp)


def made_anew(
    op: ManualComputationOp,
    operands: Sequence[tuple[SSAValue, str]],
    results: Sequence[tuple[Attribute, str]],
    block: Block,
) -> ManualComputationOp:
    """In front of `op`, on its devices; each operand and each type of a result with its sharding."""
    made = ManualComputationOp.create(
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
    made.location = op.location
    parent = op.parent
    assert parent is not None, "it stands in a block"
    parent.insert_op_before(made, op)
    return made


def replace_results(op: ManualComputationOp, indices: Sequence[int], made: ManualComputationOp) -> None:
    """The first results of `made` stand for these of `op`."""
    for index, new in zip(indices, made.results, strict=False):
        new.name_hint = op.results[index].name_hint
        op.results[index].replace_all_uses_with(new)


def move(operations: Sequence[Operation], into: Block) -> None:
    """To the end of another block."""
    for op in operations:
        op.detach()
        into.add_op(op)
