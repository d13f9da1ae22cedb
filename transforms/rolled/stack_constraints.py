"""Drop the sharding constraints on the stacks of loops, so that the loops can be cut.

On a mesh with explicit axes, JAX constrains the result of every operation, including writes to a stack:

    while(…, %s = %zeros)                                                   while(…, %s = %zeros)
      %a = sdy.sharding_constraint %slice <@mesh, [{}, {"d"}]>                %u = dynamic_update_slice %s, %slice, %i
      %u = dynamic_update_slice %s, %a, %i                             ->
      %c = sdy.sharding_constraint %u <@mesh, [{}, {"d"}]>
    %t = sdy.sharding_constraint %r#1 <@mesh, [{}, {"d"}]>

The constraints are dropped only if all slices keep the same sharding. This is the case if the stored value has this
sharding, or if a loop reads all slices and constrains them to this sharding. Stacks whose first dimension is sharded
stay unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult, SSAValue, Use
from xdsl.rewriter import Rewriter

from ...analysis.copies.loop_cuts import look_through_reshapes
from ...analysis.step.counted_loops import CountedLoop, counted_loop, is_bare
from ...analysis.step.stacks import keeps_order
from ...dialects.sdy.sharding_ops import ShardingConstraintOp
from ...dialects.sdy.sharding_text import without_free_dimensions
from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.control import WhileOp
from ...dialects.stablehlo.slices import DynamicSliceOp, DynamicUpdateSliceOp
from ...support.operations import every_operation


def drop_stack_constraints(module: ModuleOp) -> None:
    """Drop the constraints on the stacks that later loops read, in all functions of the module."""
    for op in every_operation(module):
        if isinstance(op, WhileOp) and (loop := counted_loop(op)) is not None:
            for index in range(len(op.results)):
                _drop_around_stack(loop, index)


def _drop_around_stack(loop: CountedLoop, index: int) -> None:
    """Drop the constraints on the stack that is carry `index` of the loop, if the slices of the stack keep their
    sharding."""
    constraint = _constraint_on(loop.yielded[index])
    update = None if constraint is None else constraint.input.owner
    if (
        constraint is None
        or not isinstance(update, DynamicUpdateSliceOp)
        or update.operand is not loop.block.args[index]
        or update.parent is not loop.block
        or without_free_dimensions(constraint.sharding)[1] == 0
    ):
        return
    on_slice = _constraint_on(update.update)
    if on_slice is not None and on_slice.sharding != constraint.sharding:
        return
    slice_ = update.update if on_slice is None else on_slice.input
    later = list(_constraints_after(loop.op.results[index], constraint))
    stored = _constraint_on(look_through_reshapes(slice_))
    is_stored = stored is not None and _have_same_sharding(stored, constraint)
    stacks = [loop.op.results[index], *(op.result for op in later)]
    reads = [read for stack in stacks for read in _read_slices(stack)]
    if not reads or not (is_stored or any(_constrains_all(read, loop.trips, constraint) for read in reads)):
        return
    for op in later:
        for use in list(op.result.uses):
            if _leads_to_loops(use):
                use.operation.operands[use.index] = op.input
        if not op.result.uses:
            Rewriter.erase_op(op)
    constraint.result.replace_all_uses_with(constraint.input)
    Rewriter.erase_op(constraint)
    if on_slice is not None:
        update.operands[1] = slice_
        if not on_slice.result.uses:
            Rewriter.erase_op(on_slice)


def _constraints_after(stack: SSAValue, like: ShardingConstraintOp) -> Iterator[ShardingConstraintOp]:
    """Yield the constraints that give the stack, or a reshape of it, the sharding of `like`."""
    for use in list(stack.uses):
        op = use.operation
        if isinstance(op, ShardingConstraintOp) and is_bare(op) and _have_same_sharding(op, like):
            yield op
            yield from _constraints_after(op.result, like)
        elif keeps_order(op):
            yield from _constraints_after(op.results[0], like)


def _have_same_sharding(op: ShardingConstraintOp, other: ShardingConstraintOp) -> bool:
    """Return whether the shardings are equal apart from leading dimensions that are not sharded."""
    (trailing, free), (other_trailing, other_free) = (
        without_free_dimensions(constraint.sharding) for constraint in (op, other)
    )
    return trailing == other_trailing and shape_of(op.result)[free:] == shape_of(other.result)[other_free:]


def _leads_to_loops(use: Use) -> bool:
    """Return whether the use leads only to operands of loops, directly or through reshapes and constraints."""
    op = use.operation
    if isinstance(op, WhileOp):
        return True
    is_passed_on = keeps_order(op) or isinstance(op, ShardingConstraintOp)
    return is_passed_on and all(map(_leads_to_loops, op.results[0].uses))


def _constraint_on(value: SSAValue) -> ShardingConstraintOp | None:
    """Return the constraint that defines the value; None if another operation defines it."""
    op = value.op if isinstance(value, OpResult) else None
    return op if isinstance(op, ShardingConstraintOp) and is_bare(op) else None


def _read_slices(stack: SSAValue) -> Iterator[tuple[CountedLoop, DynamicSliceOp]]:
    """Yield each loop that carries the stack unchanged, directly or through reshapes, paired with each operation in the
    loop that reads a slice of the stack."""
    for use in stack.uses:
        if keeps_order(use.operation):
            yield from _read_slices(use.operation.results[0])
        if (loop := counted_loop(use.operation)) is not None and loop.is_invariant(use.index):
            users = [inner.operation for inner in loop.block.args[use.index].uses]
            yield from ((loop, user) for user in users if isinstance(user, DynamicSliceOp))


def _constrains_all(read: tuple[CountedLoop, DynamicSliceOp], slices: int, like: ShardingConstraintOp) -> bool:
    """Return whether the loop reads all slices, and a constraint gives each of them the sharding of `like`."""
    loop, op = read
    index = loop.affine(op.start_indices[0])
    if loop.trips != slices or index is None or not index.covers(slices):
        return False
    users = [use.operation for use in op.result.uses]
    return any(isinstance(user, ShardingConstraintOp) and _have_same_sharding(user, like) for user in users)
