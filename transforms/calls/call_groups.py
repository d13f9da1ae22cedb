"""Replace groups of operations with calls: find the insertion point of each call, and redirect uses to its results. All
operations of a group come from one inlined call.

The operations of a group need not be adjacent.

    %1 = f %x        // of the call            %3 = g %x
    %3 = g %x                          ->      %4 = call @f(%x, %3)
    %4 = h %1, %3    // of the call

The call is inserted at the first operation of its group, or after the last definition that it reads. Operations before
this point that read results of the group move after the call. If the call itself reads a result of such an operation,
there is no valid insertion point. The order of effects must not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import CallOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue, Use

from ...analysis.step.order import read_values
from ...dialects.dead_code import erase_unread
from ...rules.effects import PURE_IF_BODY_IS, is_constant, why_impure
from ...support.operations import every_operation, name_of, operations_in
from .bodies import InlinedBody, LeftInlined, MatchedCall, body_of
from .origins import InlinedCall, Origins
from .templates import CallTemplate, Parts, result_pairs, same_body


@dataclass(frozen=True)
class InsertionPoint:
    """The insertion point of a call.

    Attributes:
        before: The operation before which the call is inserted.
        moved_after: The operations to move between the call and `before`, in order.
    """

    before: Operation
    moved_after: tuple[Operation, ...]


class Positions:
    """Positions of a block's operations. They stay comparable while operations are replaced and moved."""

    def __init__(self, block: Block):
        self.block = block
        self.of = dict[Operation, float]()
        self._renumber()

    def _renumber(self) -> None:
        self.of = {op: float(index) for index, op in enumerate(operations_in(self.block))}

    def definition(self, value: SSAValue) -> Operation | None:
        """Return the operation of the block that defines the value; None if the value is defined elsewhere."""
        return value.owner if isinstance(value.owner, Operation) and value.owner in self.of else None

    def insert(self, operations: Sequence[Operation]) -> None:
        """Assign positions to adjacent operations that were inserted or moved."""
        previous, following = operations[0].prev_op, operations[-1].next_op
        low = self.of[previous] if previous is not None else -1.0
        high = self.of[following] if following is not None else low + 2.0
        for index, op in enumerate(operations, 1):
            self.of[op] = low + (high - low) * index / (len(operations) + 1)
            if not low < self.of[op] < high:
                self._renumber()
                return


def insertion_point_of(
    members: Collection[Operation], inputs: Collection[SSAValue], positions: Positions
) -> InsertionPoint:
    """Find the insertion point of a call.

    Args:
        members: The operations that become the call.
        inputs: The values that the call reads.
        positions: The positions in the block.

    Raises:
        LeftInlined: The call and another operation would depend on each other.
    """
    inside = set(members)
    first = min(inside, key=positions.of.__getitem__)
    makers = [op for value in inputs if (op := positions.definition(value)) is not None]
    latest = max(makers, key=positions.of.__getitem__, default=None)
    if latest is None or positions.of[latest] < positions.of[first]:
        return InsertionPoint(first, ())
    results = {result for op in inside for result in op.results}
    moved_after = list[Operation]()
    current = first
    while current is not latest.next_op:
        if current not in inside and not results.isdisjoint(read_values(current)):
            moved_after.append(current)
            results.update(current.results)
        assert current.next_op is not None, "the block ends after the definitions of the inputs"
        current = current.next_op
    if any(op in moved_after for op in makers):
        raise LeftInlined("its operands depend on its results")
    while current in inside:
        assert current.next_op is not None, "the block ends with a terminator"
        current = current.next_op
    return InsertionPoint(current, tuple(moved_after))


@dataclass(frozen=True)
class Effects:
    """The operations of a block that have effects, which must stay in order.

    `pure`: the calls to functions without effects; every other call is treated as an effect.
    """

    pure: set[Operation] = field(default_factory=set[Operation])

    def has_effect(self, op: Operation) -> bool:
        return any(map(self._has_own_effect, every_operation(op)))

    def _has_own_effect(self, op: Operation) -> bool:
        if isinstance(op, CallOp):
            return op not in self.pure
        if op.regions and name_of(op) in PURE_IF_BODY_IS:
            return False  # `has_effect` also checks the operations in its regions.
        return why_impure(op) is not None

    def require_order(self, members: Sequence[Operation], point: InsertionPoint, positions: Positions) -> None:
        """Raise `LeftInlined` if a call at the insertion point, in place of `members`, would reorder effects."""
        if not any(map(self.has_effect, (*members, *point.moved_after))):
            return
        inside = set(members)
        end = max(positions.of[op] for op in (point.before, *members))
        current: Operation | None = min(members, key=positions.of.__getitem__)
        while current is not None and positions.of[current] < end:
            if current not in inside and self.has_effect(current):
                raise LeftInlined("an operation with an effect stands between its operations")
            current = current.next_op


@dataclass(frozen=True, eq=False)
class Group:
    """The operations in one block that come from one inlined call, or from one copy of it.

    Attributes:
        instance: The inlined call.
        copy: The number of the copy; 0 for the call itself.
        block: The block.
        members: The operations, by their index in the callee.
    """

    instance: InlinedCall
    copy: int
    block: Block
    members: dict[int, Operation] = field(default_factory=dict[int, Operation])

    def results(self, template: CallTemplate, parts: Parts) -> dict[SSAValue, SSAValue]:
        """Map each result that other operations use to the corresponding result of the template.

        Raises:
            LeftInlined: The template has no corresponding result.
        """
        original_results = dict[SSAValue, SSAValue]()
        inside = self._ids()
        for index, op in self.members.items():
            outside = [result for result in op.results if any(self._is_outside_use(use, inside) for use in result.uses)]
            if not outside:
                continue
            original = dict(result_pairs(op, template.operations[index], parts))
            for result in outside:
                if result not in original:
                    raise LeftInlined(f"a result of {name_of(op)} that the function lacks has uses outside the call")
                original_results[result] = original[result]
        return original_results

    def _ids(self) -> set[int]:
        """Return the Python ids of the members. Looking up ids is much faster than looking up operations."""
        return set(map(id, self.members.values()))

    def uses_by_others(self, value: SSAValue) -> Iterator[tuple[Operation, int]]:
        """Yield the uses of the value by operations outside the group. Each use is a pair of an operation and an
        operand index."""
        inside = self._ids()
        for use in list(value.uses):
            if self._is_outside_use(use, inside):
                yield use.operation, use.index

    def _is_outside_use(self, use: Use, inside: Collection[int]) -> bool:
        reader = use.operation
        if id(reader) in inside:
            return False
        return reader.parent is self.block or id(self.block.find_ancestor_op_in_block(reader)) not in inside


def whole_body(
    group: Group, matched: MatchedCall, needed: Collection[SSAValue], passed: Mapping[int, SSAValue]
) -> InlinedBody | None:
    """Return the body of the unmodified function if the group's operations are equal to this body; otherwise None.

    Args:
        group, matched: The operations and their match with the template.
        needed: The values of the template that the call must return.
        passed: The current values of the call's original operands, for arguments that no operation reads.
    """
    template = matched.template
    operations = len(matched.members.keys() | matched.cloned.keys())
    if operations != template.length - 1 or (group.copy and template.is_marked):
        return None
    if not set(needed).issubset(template.returned):
        return None
    arguments = dict(passed) | _arguments(matched)
    if len(arguments) != len(template.block.args):
        return None
    listed = dict(sorted(arguments.items()))
    if matched.is_exact:
        return InlinedBody(template.block, tuple(listed.items()), template.returned)
    body = body_of(matched, listed, template.returned)
    return body if same_body(body.block, template.block) else None


def part_body(matched: MatchedCall, needed: Iterable[SSAValue]) -> InlinedBody:
    """Return the body of a part of the function. The part contains the operations that still exist.

    `needed`: the values of the template that the call must return.

    Raises:
        LeftInlined: No result is used, or operations of the function are marked.
    """
    template = matched.template
    if template.is_marked:
        raise LeftInlined("operations of the function are marked")
    order = {value: index for index, value in reversed(list(enumerate(template.returned)))}
    listed = sorted(needed, key=lambda value: (order.get(value, len(order)), _definition_order(template, value)))
    if not listed:
        raise LeftInlined("its results are unused")
    return body_of(matched, _arguments(matched), tuple(listed))


def _arguments(matched: MatchedCall) -> dict[int, SSAValue]:
    arguments = enumerate(matched.template.block.args)
    return {index: matched.current_values[value] for index, value in arguments if value in matched.current_values}


def _definition_order(template: CallTemplate, value: SSAValue) -> tuple[int, int]:
    assert isinstance(value, OpResult), "values with outside uses are results"
    return template.index[value.op], value.index


def insert_call(call: CallOp, point: InsertionPoint, positions: Positions) -> None:
    """Insert the call at the insertion point, and move the operations that must follow it."""
    positions.block.insert_op_before(call, point.before)
    for op in point.moved_after:
        op.detach()
        positions.block.insert_op_before(op, point.before)
    positions.insert([call, *point.moved_after])


def redirect_passed_arguments(
    call: CallOp, group: Group, template: CallTemplate, enclosing: CallTemplate, origins: Origins, positions: Positions
) -> None:
    """For each argument that the function returns unchanged, redirect uses of the operand to the result of the call.

    Before inlining, these uses read the results of the call.

    Args:
        call: The new call.
        group, template: The group that the call replaces, and its callee.
        enclosing: The function that contained the call before inlining.
        origins: The origin of each operation.
        positions: The positions in the block.
    """
    called = enclosing.operations[group.instance.at.index]
    here = (group.instance.at.instance, group.copy)
    for returned, result, original_result in zip(template.returned, call.results, called.results, strict=True):
        if not isinstance(returned, BlockArgument):
            continue
        for use in list(call.operands[returned.index].uses):
            origin = origins.of.get(use.operation)
            reader = group.block.find_ancestor_op_in_block(use.operation)
            if origin is None or reader is None or (origin.instance, origin.copy) != here:
                continue
            operands = enclosing.operations[origin.index].operands
            if positions.of[reader] > positions.of[call] and original_result in operands[use.index : use.index + 1]:
                use.operation.operands[use.index] = result


def erase_members(members: Iterable[Operation]) -> None:
    """Erase the operations of an outlined call and the literals that only these operations read.

    Constant expressions that are still read by other operations stay.
    """
    listed = list(members)
    read = [value.owner for op in listed for inner in every_operation(op) for value in inner.operands]
    for op in reversed(listed):
        _erase_unread(op)
    for owner in dict.fromkeys(read):
        if isinstance(owner, Operation) and owner.parent is not None and is_constant(owner):
            _erase_unread(owner)


def _erase_unread(op: Operation) -> None:
    if not any(result.first_use is not None for result in op.results):
        erase_unread(op)
