"""Conditionals and their gradients: a loop in a branch, and the loop in the same branch that reads its stacks.

    %r:2 = case %c { loop; return %y, %s }              case %c { return %y }
    …                                            ->     …
    %g   = case %c { loop reads %r#1; return %d }       %g = case %c { loop; loop reads %s; return %d }

For as long as loops are cut, the operations of a forward branch stand in front of those of its gradient, so that stacks
lead from loop to loop in one block. Afterwards they go back, and the forward conditional returns what is still read:
new results have zeros in the other branches, as JAX writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType, UnrealizedConversionCastOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.step.counted_loops import is_bare
from ...analysis.step.crossings import Crossings
from ...analysis.step.order import read_values
from ...dialects.dense import DenseAttr
from ...dialects.elements import dtype_of
from ...dialects.stablehlo.branches import CaseOp, IfOp
from ...dialects.stablehlo.creation import ConstantOp
from ...dialects.stablehlo.shapes import BroadcastInDimOp
from ...rules.kinds import is_constant
from ...support.type_guards import is_tensor
from ...support.walk import every_operation
from .carries import Replaced

_CONDITIONALS = (CaseOp, IfOp)
Read = tuple[Operation, int, SSAValue]
"""An operand: its operation, its place, and the value that stood there."""


@dataclass(frozen=True)
class JoinedBranches:
    """`forward`, `backward`: two conditionals of one condition. `markers`: where in each region of the gradient its own
    operations begin. `outer`: the results that others read. `returned`: of each forward region. `reads`: the operands
    in the gradient that were results of the forward conditional."""

    forward: Operation
    backward: Operation
    markers: tuple[Operation, ...]
    outer: tuple[int, ...]
    returned: tuple[tuple[SSAValue, ...], ...]
    reads: tuple[Read, ...]


def join_branches(block: Block, crossings: Crossings) -> list[JoinedBranches]:
    """Move the branches of each forward conditional of the block in front of those of its gradient."""
    found, taken = list[JoinedBranches](), set[Operation]()
    conditionals = [op for op in block.ops if isinstance(op, _CONDITIONALS)]
    for number, backward in enumerate(conditionals):
        for forward in conditionals[:number]:
            if taken.isdisjoint((forward, backward)) and _are_pair(forward, backward, crossings):
                taken.update((forward, backward))
                found.append(_joined(forward, backward))
    return found


def split_branches(joined: JoinedBranches, is_changed: bool, replaced: Replaced) -> None:
    """Move the branches back. `is_changed`: whether something was rewritten in them; `replaced` is added to."""
    forward = [_ops_before(marker) for marker in joined.markers]
    crossing = [_crossing(operations, marker) for operations, marker in zip(forward, joined.markers, strict=True)]
    for region, operations, marker in zip(joined.forward.regions, forward, joined.markers, strict=True):
        last = region.block.last_op
        assert last is not None, "verified: a region ends"
        for op in operations:
            op.detach()
            region.block.insert_op_before(op, last)
        Rewriter.erase_op(marker)
    if is_changed:
        _return_what_is_read(joined, crossing, replaced)
        return
    for region, returned in zip(joined.forward.regions, joined.returned, strict=True):
        last = region.block.last_op
        assert last is not None, "verified: a region ends"
        last.operands = returned
    for op, index, value in joined.reads:
        op.operands[index] = value


def _are_pair(forward: Operation, backward: Operation, crossings: Crossings) -> bool:
    if type(forward) is not type(backward) or len(forward.regions) != len(backward.regions):
        return False
    if not _is_same(forward.operands[0], backward.operands[0]) or not crossings.may_cross(forward, backward):
        return False
    if not is_bare(forward) or not any(_reads(backward, result) for result in forward.results):
        return False
    blocks = [region.blocks for op in (forward, backward) for region in op.regions]
    if any(len(listed) != 1 or listed[0].last_op is None for listed in blocks):
        return False
    made = (result for listed in blocks for op in listed[0].ops for result in op.results)
    return all(is_tensor(result.type) for result in made)


def _is_same(one: SSAValue, other: SSAValue) -> bool:
    """Whether both are the same value, computed once or in the same way from one value."""
    while one is not other:
        if not (isinstance(one, OpResult) and isinstance(other, OpResult)):
            return False
        alike = type(one.op) is type(other.op) and len(one.op.operands) == len(other.op.operands) == 1
        if not alike or one.type != other.type or one.op.regions or one.op.properties != other.op.properties:
            return False
        one, other = one.op.operands[0], other.op.operands[0]
    return True


def _reads(holder: Operation, value: SSAValue) -> bool:
    """Whether the value is read in the regions of an operation."""
    return any(_is_inside(use.operation, holder) for use in value.uses)


def _is_inside(op: Operation, holder: Operation) -> bool:
    at = op.parent_op()
    while at is not None and at is not holder:
        at = at.parent_op()
    return at is holder


def _joined(forward: Operation, backward: Operation) -> JoinedBranches:
    outer = tuple(
        result.index
        for result in forward.results
        if any(not _is_inside(use.operation, backward) for use in result.uses)
    )
    returned, reads, markers = list[tuple[SSAValue, ...]](), list[Read](), list[Operation]()
    for first, second in zip(forward.regions, backward.regions, strict=True):
        last, marker = first.block.last_op, UnrealizedConversionCastOp(operands=[[]], result_types=[[]])
        assert last is not None, "checked: a region ends"
        handed_on = tuple(last.operands)
        for op in [op for top in second.block.ops for op in every_operation(top)]:
            for index, value in enumerate(op.operands):
                if isinstance(value, OpResult) and value.op is forward:
                    reads.append((op, index, value))
                    op.operands[index] = handed_on[value.index]
        last.operands = [handed_on[index] for index in outer]
        before = second.block.first_op
        assert before is not None, "checked: a region ends"
        second.block.insert_op_before(marker, before)
        for op in [op for op in first.block.ops if op is not last]:
            op.detach()
            second.block.insert_op_before(op, marker)
        returned.append(handed_on)
        markers.append(marker)
    return JoinedBranches(forward, backward, tuple(markers), outer, tuple(returned), tuple(reads))


def _ops_before(marker: Operation) -> list[Operation]:
    found, at = list[Operation](), marker.prev_op
    while at is not None:
        found.append(at)
        at = at.prev_op
    return found[::-1]


def _crossing(operations: Sequence[Operation], marker: Operation) -> list[OpResult]:
    """What the gradient reads of the forward branch; it gets constants of its own."""
    made = {result for op in operations for result in op.results}
    read, at = dict[SSAValue, None](), marker.next_op
    while at is not None:
        read |= dict.fromkeys(read_values(at))
        at = at.next_op
    found = [value for value in read if isinstance(value, OpResult) and value in made]
    for value in [value for value in found if is_constant(value.op)]:
        own = value.op.clone()
        Rewriter.insert_op(own, InsertPoint.after(marker))
        _replace_behind(value, own.results[value.index], marker)
    return [value for value in found if not is_constant(value.op)]


def _replace_behind(value: SSAValue, by: SSAValue, marker: Operation) -> None:
    block = marker.parent
    assert block is not None, "it stands in a region of the gradient"
    position = {op: number for number, op in enumerate(block.ops)}

    def is_behind(op: Operation) -> bool:
        top = block.find_ancestor_op_in_block(op)
        return top is not None and position[top] > position[marker]

    value.replace_uses_with_if(by, lambda use: is_behind(use.operation))


def _return_what_is_read(joined: JoinedBranches, crossing: Sequence[Sequence[OpResult]], replaced: Replaced) -> None:
    """A new forward conditional, that returns what others read and then what the gradient reads of each branch."""
    old = joined.forward
    kept = [_returned_already(region.block) for region in old.regions]
    new = [[value for value in values if value not in already] for values, already in zip(crossing, kept, strict=True)]
    types = _slots(new)
    for region, values in zip(old.regions, new, strict=True):
        last, free = region.block.last_op, list(values)
        assert last is not None, "verified: a region ends"
        handed_on = list[SSAValue]()
        for type_ in types:
            value = next((value for value in free if value.type == type_), None)
            if value is None:
                handed_on.append(_zeros(type_, last, old))
            else:
                free.remove(value)
                handed_on.append(value)
        last.operands = [*last.operands, *handed_on]
    results = [*(old.results[index].type for index in joined.outer), *types]
    made = type(old).create(
        operands=list(old.operands),
        result_types=results,
        properties=dict(old.properties),
        attributes=dict(old.attributes),
        regions=[old.detach_region(region) for region in list(old.regions)],
    )
    made.location = old.location
    Rewriter.insert_op(made, InsertPoint.before(old))
    for index, result in zip(joined.outer, made.results, strict=False):
        result.name_hint = old.results[index].name_hint
        old.results[index].replace_all_uses_with(result)
        replaced[old.results[index]] = result
    for region, values in zip(made.regions, crossing, strict=True):
        last = region.block.last_op
        assert last is not None, "verified: a region ends"
        places = {value: index for index, value in reversed(list(enumerate(last.operands)))}
        for value in values:
            result = made.results[places[value]]
            value.replace_uses_with_if(result, lambda use: _is_inside(use.operation, joined.backward))
    Rewriter.erase_op(old)


def _returned_already(block: Block) -> set[SSAValue]:
    assert block.last_op is not None, "verified: a region ends"
    return set(block.last_op.operands)


def _slots(values: Sequence[Sequence[OpResult]]) -> list[Attribute]:
    """The types of the new results: of each type the largest number that any branch returns."""
    needed = dict[Attribute, int]()
    for listed in values:
        counts = dict[Attribute, int]()
        for value in listed:
            counts[value.type] = counts.get(value.type, 0) + 1
        needed = _largest(needed, counts)
    return [type_ for type_, count in needed.items() for _ in range(count)]


def _largest(one: Mapping[Attribute, int], other: Mapping[Attribute, int]) -> dict[Attribute, int]:
    return {type_: max(one.get(type_, 0), other.get(type_, 0)) for type_ in {**one, **other}}


def _zeros(type_: Attribute, before: Operation, like: Operation) -> SSAValue:
    """What a branch returns where another one returns a value that the gradient reads."""
    assert is_tensor(type_), "checked: all values are tensors"
    element = type_.element_type
    zero = ConstantOp(DenseAttr.get(TensorType(element, []), bytes(dtype_of(element).itemsize)))
    new: list[Operation] = [zero]
    if type_.get_shape():
        new.append(BroadcastInDimOp(zero.output, [], TensorType(element, type_.get_shape())))
    for op in new:
        op.location = like.location
    Rewriter.insert_op(new, InsertPoint.before(before))
    return new[-1].results[0]
