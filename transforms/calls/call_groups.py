"""Groups of operations that belong to one inlined call: where the call is inserted, and how it replaces them.

The operations of a group need not be adjacent.

    %1 = f %x        // of the call            %3 = g %x
    %3 = g %x                          ->      %4 = call @f(%x, %3)
    %4 = h %1, %3    // of the call

The call is inserted at the first of them, or after the last definition that it reads. Operations before that point that
read its results move after the call. If the call reads a result of such an operation, there is no valid point. The
order of effects must not change.
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
from .bodies import CallReading, InlinedBody, LeftInlined, body_of
from .origins import InlinedCall, Origins
from .templates import CallTemplate, Parts, result_pairs, same_body


@dataclass(frozen=True)
class Place:
    """The insertion point of a call.

    Attributes:
        before: The operation before which the call is inserted.
        moved_after: The operations that move between the call and `before`, in this order.
    """

    before: Operation
    moved_after: tuple[Operation, ...]


class Positions:
    """Positions of a block's operations, which stay comparable while operations are replaced and moved."""

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


def place_of(members: Collection[Operation], inputs: Collection[SSAValue], positions: Positions) -> Place:
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
        return Place(first, ())
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
    return Place(current, tuple(moved_after))


@dataclass(frozen=True)
class Effects:
    """The order of effects in a block.

    `pure`: the calls of functions without effects; every other call counts as an effect.
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

    def demand_order(self, members: Sequence[Operation], place: Place, positions: Positions) -> None:
        """Raise `LeftInlined` if replacing `members` by a call at the insertion point would reorder effects."""
        if not any(map(self.has_effect, (*members, *place.moved_after))):
            return
        inside = set(members)
        end = max(positions.of[op] for op in (place.before, *members))
        current: Operation | None = min(members, key=positions.of.__getitem__)
        while current is not None and positions.of[current] < end:
            if current not in inside and self.has_effect(current):
                raise LeftInlined("an operation with an effect stands between its operations")
            current = current.next_op


@dataclass(frozen=True, eq=False)
class Group:
    """The operations of one call, or of one copy of it, in one block.

    `members`: the operations by their index in the callee.
    """

    instance: InlinedCall
    copy: int
    block: Block
    members: dict[int, Operation] = field(default_factory=dict[int, Operation])

    def results(self, template: CallTemplate, parts: Parts) -> dict[SSAValue, SSAValue]:
        """Map the results that other operations use to the results of the template.

        Raises:
            LeftInlined: The template lacks such a result.
        """
        original_results = dict[SSAValue, SSAValue]()
        inside = self._ids()
        for index, op in self.members.items():
            outside = [result for result in op.results if any(self._is_by_others(use, inside) for use in result.uses)]
            if not outside:
                continue
            original = dict(result_pairs(op, template.operations[index], parts))
            for result in outside:
                if result not in original:
                    raise LeftInlined(f"a new result of {name_of(op)} has other uses")
                original_results[result] = original[result]
        return original_results

    def _ids(self) -> set[int]:
        """The ids of the members: looking them up is several times faster than looking up operations."""
        return set(map(id, self.members.values()))

    def uses_by_others(self, value: SSAValue) -> Iterator[tuple[Operation, int]]:
        """Yield the uses of the value by operations outside the group, as pairs of operation and operand index."""
        inside = self._ids()
        for use in list(value.uses):
            if self._is_by_others(use, inside):
                yield use.operation, use.index

    def _is_by_others(self, use: Use, inside: Collection[int]) -> bool:
        reader = use.operation
        if id(reader) in inside:
            return False
        return reader.parent is self.block or id(self.block.find_ancestor_op_in_block(reader)) not in inside


def whole_body(
    group: Group, reading: CallReading, needed: Collection[SSAValue], passed: Mapping[int, SSAValue]
) -> InlinedBody | None:
    """Return the body if it equals the body of the unmodified function, else None.

    Args:
        group, reading: The operations and their match.
        needed: The template's values that the call must return.
        passed: The current values of the call's original operands, for arguments that no operation reads.
    """
    template = reading.template
    operations = len(reading.members.keys() | reading.cloned.keys())
    if operations != template.length - 1 or (group.copy and template.is_marked):
        return None
    if not set(needed).issubset(template.returned):
        return None
    arguments = dict(passed) | _arguments(reading)
    if len(arguments) != len(template.block.args):
        return None
    listed = dict(sorted(arguments.items()))
    if reading.is_exact:
        return InlinedBody(template.block, tuple(listed.items()), template.returned)
    body = body_of(reading, listed, template.returned)
    return body if same_body(body.block, template.block) else None


def part_body(reading: CallReading, needed: Iterable[SSAValue]) -> InlinedBody:
    """Return the body of a part: the operations of the function that remain.

    `needed`: the template's values that the call must return.

    Raises:
        LeftInlined: No result is used, or operations of the function are marked.
    """
    template = reading.template
    if template.is_marked:
        raise LeftInlined("operations of the function are marked")
    order = {value: place for place, value in reversed(list(enumerate(template.returned)))}
    listed = sorted(needed, key=lambda value: (order.get(value, len(order)), _rank(template, value)))
    if not listed:
        raise LeftInlined("its results are unused")
    return body_of(reading, _arguments(reading), tuple(listed))


def _arguments(reading: CallReading) -> dict[int, SSAValue]:
    arguments = enumerate(reading.template.block.args)
    return {index: reading.current_values[value] for index, value in arguments if value in reading.current_values}


def _rank(template: CallTemplate, value: SSAValue) -> tuple[int, int]:
    assert isinstance(value, OpResult), "values with outside uses are results"
    return template.index[value.op], value.index


def insert_call(call: CallOp, place: Place, positions: Positions) -> None:
    """Insert the call at the place, and move the operations that must follow it."""
    positions.block.insert_op_before(call, place.before)
    for op in place.moved_after:
        op.detach()
        positions.block.insert_op_before(op, place.before)
    positions.insert([call, *place.moved_after])


def redirect_passed_arguments(
    call: CallOp, group: Group, template: CallTemplate, around: CallTemplate, origins: Origins, positions: Positions
) -> None:
    """Redirect uses of values that the function returns unchanged from its arguments to the results of the new call.

    Inlining replaced these results by the call's operands.

    Args:
        call: The new call.
        group, template: The group that it replaces, and its callee.
        around: The function that contained the call.
        origins: The origin of each operation.
        positions: The positions in the block.
    """
    called = around.operations[group.instance.at.index]
    here = (group.instance.at.instance, group.copy)
    for returned, result, original_result in zip(template.returned, call.results, called.results, strict=True):
        if not isinstance(returned, BlockArgument):
            continue
        for use in list(call.operands[returned.index].uses):
            origin = origins.of.get(use.operation)
            reader = group.block.find_ancestor_op_in_block(use.operation)
            if origin is None or reader is None or (origin.instance, origin.copy) != here:
                continue
            operands = around.operations[origin.index].operands
            if positions.of[reader] > positions.of[call] and original_result in operands[use.index : use.index + 1]:
                use.operation.operands[use.index] = result


def erase(members: Iterable[Operation]) -> None:
    """Erase the operations of an outlined call, and the literals that only they read.

    Constant expressions that other operations still read are kept.
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
