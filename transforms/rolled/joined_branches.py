"""Join a conditional with its gradient, so that the operations of a branch and of its gradient are in one block.

    %r:2 = case %c { loop; return %y, %s }              case %c { return %y }
    …                                            ->     …
    %g   = case %c { loop reads %r#1; return %d }       %g = case %c { loop; loop reads %s; return %d }

The branches stay joined while loops are cut, and while the blocks in branches are recomputed. The operations of a
forward branch then precede the operations of its gradient, so that stacks connect loops of one block, and a branch is a
step of its own. Afterwards, the forward operations move back, and the forward conditional returns the values that the
gradient still reads. A branch that does not compute a new result returns zeros for it, as in JAX.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import BoolAttr, ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.step.counted_loops import is_bare
from ...analysis.step.crossings import Crossings
from ...analysis.step.order import functions_of, read_values, single_block
from ...dialects.constants.dense import DenseAttr
from ...dialects.constants.elements import dtype_of
from ...dialects.stablehlo.branches import CaseOp, IfOp
from ...dialects.stablehlo.creation import ConstantOp
from ...dialects.stablehlo.custom_call import CustomCallOp
from ...dialects.stablehlo.shapes import BroadcastInDimOp
from ...rules.effects import is_constant
from ...support.operations import block_of, every_operation, operations_in, terminator_of
from ...support.type_guards import is_tensor
from .carries import Replaced

_CONDITIONALS = (CaseOp, IfOp)
_TARGET = "recompute.joined_branch"
"""The target of the custom calls that exist while branches are joined."""
Read = tuple[Operation, int, SSAValue]
"""A use of a value as an operand: the operation, the operand index, and the original value."""


@dataclass(frozen=True, kw_only=True)
class JoinedBranches:
    """Two conditionals whose branches are joined.

    Attributes:
        forward, backward: The conditionals. They have the same condition.
        markers: For each region of the gradient, a marker between the forward operations and its own operations. It
            reads the returned values of the branch, then the values that the branch captures.
        placeholders: For each forward region, the operation that takes the place of its operations. It reads the values
            that the branch captures. In the gradient, copies may have replaced these values.
        outer: The indices of the forward results that operations outside the gradient use.
        returned: The original operands of the terminator of each forward branch.
        reads: The operands in the gradient that were results of the forward conditional.
    """

    forward: Operation
    backward: Operation
    markers: tuple[Operation, ...]
    placeholders: tuple[Operation, ...]
    outer: tuple[int, ...]
    returned: tuple[tuple[SSAValue, ...], ...]
    reads: tuple[Read, ...]


def join_branches(block: Block, crossings: Crossings) -> list[JoinedBranches]:
    """Move the branches of each forward conditional in the block to the beginning of its gradient's branches."""
    joined, paired = list[JoinedBranches](), set[Operation]()
    conditionals = [op for op in operations_in(block) if op.regions and isinstance(op, _CONDITIONALS)]
    for number, backward in enumerate(conditionals):
        for forward in conditionals[:number]:
            if paired.isdisjoint((forward, backward)) and _are_pair(forward, backward, crossings):
                paired.update((forward, backward))
                joined.append(_join(forward, backward))
    return joined


def has_several_conditionals(module: ModuleOp) -> bool:
    """Return whether the module contains at least two conditionals, so that one may be the gradient of another."""
    return sum(isinstance(op, _CONDITIONALS) for op in every_operation(module)) > 1


def join_branches_of_module(module: ModuleOp) -> list[JoinedBranches]:
    """Join the branches of every forward conditional in a function's body with the branches of its gradient."""
    joined = list[JoinedBranches]()
    for function in functions_of(module):
        block = single_block(function)
        joined += join_branches(block, Crossings(block))
    return joined


def split_branches(joined: JoinedBranches, is_changed: bool, replaced: Replaced) -> None:
    """Move the forward operations back to the branches of the forward conditional.

    Args:
        joined: The joined conditionals.
        is_changed: Whether the branches were rewritten while they were joined.
        replaced: The map to which the replacements of the forward conditional's results are added.
    """
    forward = [_ops_before(marker) for marker in joined.markers]
    crossing = [
        _crossing_values(operations, marker) for operations, marker in zip(forward, joined.markers, strict=True)
    ]
    for region, operations, marker, placeholder in zip(
        joined.forward.regions, forward, joined.markers, joined.placeholders, strict=True
    ):
        last = terminator_of(region.block)
        for op in operations:
            op.detach()
            region.block.insert_op_before(op, last)
        returned, captured = marker.operands[: len(joined.outer)], marker.operands[len(joined.outer) :]
        last.operands = returned
        _replace_operands((*operations, last), dict(zip(captured, placeholder.operands, strict=True)))
        for op in (placeholder, marker):
            Rewriter.erase_op(op)
    if is_changed:
        _rebuild_forward(joined, crossing, replaced)
        return
    for region, returned in zip(joined.forward.regions, joined.returned, strict=True):
        last = terminator_of(region.block)
        last.operands = returned
    for op, index, value in joined.reads:
        op.operands[index] = value


def _are_pair(forward: Operation, backward: Operation, crossings: Crossings) -> bool:
    if type(forward) is not type(backward) or len(forward.regions) != len(backward.regions):
        return False
    if not _compute_same_value(forward.operands[0], backward.operands[0]) or not crossings.may_cross(forward, backward):
        return False
    if not is_bare(forward) or not any(_reads(backward, result) for result in forward.results):
        return False
    blocks = [region.blocks for op in (forward, backward) for region in op.regions]
    if any(len(listed) != 1 or listed[0].last_op is None for listed in blocks):
        return False
    results = (result for listed in blocks for op in listed[0].ops for result in op.results)
    return all(is_tensor(result.type) for result in results)


def _compute_same_value(first: SSAValue, second: SSAValue) -> bool:
    """Return whether two values are identical, or are computed from one value by equal chains of unary operations."""
    while first is not second:
        if not (isinstance(first, OpResult) and isinstance(second, OpResult)):
            return False
        ops = (first.op, second.op)
        is_unary = type(ops[0]) is type(ops[1]) and len(ops[0].operands) == len(ops[1].operands) == 1
        if not is_unary or first.type != second.type or ops[0].regions or ops[0].properties != ops[1].properties:
            return False
        first, second = ops[0].operands[0], ops[1].operands[0]
    return True


def _reads(holder: Operation, value: SSAValue) -> bool:
    """Return whether an operation in the regions of `holder` reads the value."""
    return any(_is_inside(use.operation, holder) for use in value.uses)


def _is_inside(op: Operation, holder: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and parent is not holder:
        parent = parent.parent_op()
    return parent is holder


def _join(forward: Operation, backward: Operation) -> JoinedBranches:
    outer = tuple(
        result.index
        for result in forward.results
        if any(not _is_inside(use.operation, backward) for use in result.uses)
    )
    returned = list[tuple[SSAValue, ...]]()
    reads = list[Read]()
    markers, placeholders = list[Operation](), list[Operation]()
    for region, gradient in zip(forward.regions, backward.regions, strict=True):
        last = terminator_of(region.block)
        yielded = tuple(last.operands)
        reads += _bypass_results(forward, yielded, gradient.block)
        captured = _captured_values(region.block)
        last.operands = ()
        returned.append(yielded)
        markers.append(
            _move_before_gradient(region.block, gradient.block, [*(yielded[index] for index in outer), *captured])
        )
        placeholders.append(_placeholder(captured, [forward.results[index].type for index in outer]))
        region.block.insert_op_before(placeholders[-1], last)
        last.operands = placeholders[-1].results
    return JoinedBranches(
        forward=forward,
        backward=backward,
        markers=tuple(markers),
        placeholders=tuple(placeholders),
        outer=outer,
        returned=tuple(returned),
        reads=tuple(reads),
    )


def _bypass_results(forward: Operation, yielded: Sequence[SSAValue], gradient: Block) -> list[Read]:
    """Make the gradient's operations read values of the forward branch instead of the conditional's results.

    Returns:
        The operands that were changed.
    """
    reads = list[Read]()
    for op in [op for top in gradient.ops for op in every_operation(top)]:
        for index, value in enumerate(op.operands):
            if isinstance(value, OpResult) and value.op is forward:
                reads.append((op, index, value))
                op.operands[index] = yielded[value.index]
    return reads


def _captured_values(branch: Block) -> list[SSAValue]:
    """Return the values that the operations of a branch read from outside."""
    defined = {result for op in branch.ops for result in op.results}
    return [
        value
        for value in dict.fromkeys(value for op in branch.ops for value in read_values(op))
        if value not in defined
    ]


def _replace_operands(operations: Sequence[Operation], replacements: Mapping[SSAValue, SSAValue]) -> None:
    """Replace values that the operations read, also inside their regions."""
    for op in (inner for outer in operations for inner in every_operation(outer)):
        for index, value in enumerate(op.operands):
            if value in replacements:
                op.operands[index] = replacements[value]


def _move_before_gradient(branch: Block, gradient: Block, read: Sequence[SSAValue]) -> Operation:
    """Move the operations of a branch to the start of its gradient. Return the marker between them and the gradient's
    operations. `read`: the values that the marker reads."""
    marker = _placeholder(read, [])
    first, last = gradient.first_op, terminator_of(branch)
    assert first is not None, "the region was checked to have a terminator"
    gradient.insert_op_before(marker, first)
    for op in [op for op in branch.ops if op is not last]:
        op.detach()
        gradient.insert_op_before(op, marker)
    return marker


def _placeholder(operands: Sequence[SSAValue], result_types: Sequence[Attribute]) -> Operation:
    """Return a marker or a placeholder: an operation that is neither erased nor copied, since it has side effects."""
    return CustomCallOp.create(
        operands=operands,
        result_types=result_types,
        properties={"call_target_name": StringAttr(_TARGET), "has_side_effect": BoolAttr.from_bool(True)},
    )


def _ops_before(marker: Operation) -> list[Operation]:
    operations, current = list[Operation](), marker.prev_op
    while current is not None:
        operations.append(current)
        current = current.prev_op
    return operations[::-1]


def _crossing_values(operations: Sequence[Operation], marker: Operation) -> list[OpResult]:
    """Return the values of the forward branch that the gradient reads, without constants. Constants are cloned into the
    gradient."""
    results = {result for op in operations for result in op.results}
    read, current = dict[SSAValue, None](), marker.next_op
    while current is not None:
        read |= dict.fromkeys(read_values(current))
        current = current.next_op
    crossing = [value for value in read if isinstance(value, OpResult) and value in results]
    for value in [value for value in crossing if is_constant(value.op)]:
        own = value.op.clone()
        Rewriter.insert_op(own, InsertPoint.after(marker))
        _replace_after(value, own.results[value.index], marker)
    return [value for value in crossing if not is_constant(value.op)]


def _replace_after(value: SSAValue, by: SSAValue, marker: Operation) -> None:
    block = block_of(marker)
    position = {op: number for number, op in enumerate(block.ops)}

    def is_after_marker(op: Operation) -> bool:
        top = block.find_ancestor_op_in_block(op)
        return top is not None and position[top] > position[marker]

    value.replace_uses_with_if(by, lambda use: is_after_marker(use.operation))


def _rebuild_forward(joined: JoinedBranches, crossing: Sequence[Sequence[OpResult]], replaced: Replaced) -> None:
    """Rebuild the forward conditional so that it returns the results that other operations use, followed by the values
    that the gradient reads.

    `crossing`: the values that the gradient reads from each branch.
    """
    old = joined.forward
    rebuilt = type(old).create(
        operands=list(old.operands),
        result_types=[*(old.results[index].type for index in joined.outer), *_return_crossing_values(old, crossing)],
        properties=dict(old.properties),
        attributes=dict(old.attributes),
        regions=[old.detach_region(region) for region in list(old.regions)],
    )
    rebuilt.location = old.location
    Rewriter.insert_op(rebuilt, InsertPoint.before(old))
    for index, result in zip(joined.outer, rebuilt.results, strict=False):
        result.name_hint = old.results[index].name_hint
        old.results[index].replace_all_uses_with(result)
        replaced[old.results[index]] = result
    for region, values in zip(rebuilt.regions, crossing, strict=True):
        places = {value: index for index, value in reversed(list(enumerate(terminator_of(region.block).operands)))}
        for value in values:
            result = rebuilt.results[places[value]]
            value.replace_uses_with_if(result, lambda use: _is_inside(use.operation, joined.backward))
    Rewriter.erase_op(old)


def _return_crossing_values(conditional: Operation, crossing: Sequence[Sequence[OpResult]]) -> Sequence[Attribute]:
    """Append the values in `crossing` to the results of the branches that compute them, and zeros to the results of the
    other branches. Return the types of the new results."""
    ends = [terminator_of(region.block) for region in conditional.regions]
    returned_already = [set(end.operands) for end in ends]
    new = [
        [value for value in values if value not in already]
        for values, already in zip(crossing, returned_already, strict=True)
    ]
    types = _result_types(new)
    for end, values in zip(ends, new, strict=True):
        remaining_values, returned = list(values), list[SSAValue]()
        for type_ in types:
            value = next((value for value in remaining_values if value.type == type_), None)
            if value is None:
                returned.append(_zeros(type_, end, conditional))
            else:
                remaining_values.remove(value)
                returned.append(value)
        end.operands = [*end.operands, *returned]
    return types


def _result_types(values: Sequence[Sequence[OpResult]]) -> list[Attribute]:
    """Return the types of the new results. Each type occurs as many times as in the branch that returns the most values
    of this type."""
    needed = dict[Attribute, int]()
    for listed in values:
        counts = dict[Attribute, int]()
        for value in listed:
            counts[value.type] = counts.get(value.type, 0) + 1
        needed = _larger_counts(needed, counts)
    return [type_ for type_, count in needed.items() for _ in range(count)]


def _larger_counts(counts: Mapping[Attribute, int], other: Mapping[Attribute, int]) -> dict[Attribute, int]:
    return {type_: max(counts.get(type_, 0), other.get(type_, 0)) for type_ in {**counts, **other}}


def _zeros(type_: Attribute, before: Operation, like: Operation) -> SSAValue:
    """Emit the zeros that a branch returns for a value that only another branch computes."""
    assert is_tensor(type_), "all values were checked to be tensors"
    element = type_.element_type
    zero = ConstantOp(DenseAttr.get(TensorType(element, []), bytes(dtype_of(element).itemsize)))
    new: list[Operation] = [zero]
    if type_.get_shape():
        new.append(BroadcastInDimOp(zero.output, [], TensorType(element, type_.get_shape())))
    for op in new:
        op.location = like.location
    Rewriter.insert_op(new, InsertPoint.before(before))
    return new[-1].results[0]
