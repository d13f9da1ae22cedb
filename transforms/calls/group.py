"""Groups of operations of one inlined call, and their replacement by a call."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.func import CallOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue, Use

from ...rules.kinds import is_constant
from ...rules.names import name_of
from ...support.walk import every_operation
from .bodies import CallReading, InlinedBody, LeftInlined, body_of
from .origins import InlinedCall, Origins
from .places import Place, Positions
from .templates import CallTemplate, Parts, result_pairs, same_body


@dataclass(frozen=True, eq=False)
class Group:
    """The operations of one call, or of one copy of it, in one block, by their index in the function."""

    instance: InlinedCall
    copy: int
    block: Block
    members: dict[int, Operation] = field(default_factory=dict[int, Operation])

    def results(self, template: CallTemplate, parts: Parts) -> dict[SSAValue, SSAValue]:
        """Map results with outside uses to those of the template. Raises `LeftInlined` for results that it lacks."""
        original_results, inside = dict[SSAValue, SSAValue](), set(self.members.values())
        for index, op in self.members.items():
            original = dict(result_pairs(op, template.operations[index], parts))
            for result in op.results:
                if not any(self._is_by_others(use, inside) for use in result.uses):
                    continue
                if result not in original:
                    raise LeftInlined(f"a new result of {name_of(op)} has other uses")
                original_results[result] = original[result]
        return original_results

    def uses_by_others(self, value: SSAValue) -> Iterator[tuple[Operation, int]]:
        inside = set(self.members.values())
        for use in list(value.uses):
            if self._is_by_others(use, inside):
                yield use.operation, use.index

    def _is_by_others(self, use: Use, inside: Collection[Operation]) -> bool:
        reader = use.operation
        return reader not in inside and self.block.find_ancestor_op_in_block(reader) not in inside


def whole_body(
    group: Group, reading: CallReading, wanted: Collection[SSAValue], passed: Mapping[int, SSAValue]
) -> InlinedBody | None:
    """The body if it is that of the unmodified function, else None; `passed`: values of unread arguments."""
    template = reading.template
    operations = len(reading.members.keys() | reading.cloned.keys())
    if operations != template.length - 1 or (group.copy and template.is_marked):
        return None
    if not set(wanted).issubset(template.returned):
        return None
    arguments = dict(passed) | _arguments(reading)
    if len(arguments) != len(template.block.args):
        return None
    listed = dict(sorted(arguments.items()))
    if reading.is_exact:
        return InlinedBody(template.block, tuple(listed.items()), template.returned)
    body = body_of(reading, listed, template.returned)
    return body if same_body(body.block, template.block) else None


def part_body(reading: CallReading, wanted: Iterable[SSAValue]) -> InlinedBody:
    """A body of the remaining operations of the function. Raises `LeftInlined`."""
    template = reading.template
    if template.is_marked:
        raise LeftInlined("operations of the function are marked")
    order = {value: place for place, value in reversed(list(enumerate(template.returned)))}
    listed = sorted(wanted, key=lambda value: (order.get(value, len(order)), _rank(template, value)))
    if not listed:
        raise LeftInlined("its results are unused")
    return body_of(reading, _arguments(reading), tuple(listed))


def _arguments(reading: CallReading) -> dict[int, SSAValue]:
    arguments = enumerate(reading.template.block.args)
    return {index: reading.stands[value] for index, value in arguments if value in reading.stands}


def _rank(template: CallTemplate, value: SSAValue) -> tuple[int, int]:
    assert isinstance(value, OpResult), "values with outside uses are results"
    return template.index[value.op], value.index


def put(call: CallOp, place: Place, positions: Positions) -> None:
    positions.block.insert_op_before(call, place.before)
    for op in place.behind:
        op.detach()
        positions.block.insert_op_before(op, place.before)
    positions.inserted([call, *place.behind])


def read_passed(
    call: CallOp, group: Group, template: CallTemplate, around: CallTemplate, origins: Origins, positions: Positions
) -> None:
    """Redirect uses of results that the function passes through from its arguments to the new call.

    `around`: the function that contained the call.
    """
    called = around.operations[group.instance.at.index]
    here = (group.instance.at.instance, group.copy)
    for returned, result, original_result in zip(template.returned, call.results, called.results, strict=True):
        if not isinstance(returned, BlockArgument):
            continue
        for use in list(call.operands[returned.index].uses):
            origin, reader = origins.of.get(use.operation), group.block.find_ancestor_op_in_block(use.operation)
            if origin is None or reader is None or (origin.instance, origin.copy) != here:
                continue
            operands = around.operations[origin.index].operands
            if positions.of[reader] > positions.of[call] and original_result in operands[use.index : use.index + 1]:
                use.operation.operands[use.index] = result


def erase(members: Iterable[Operation]) -> None:
    """Erase the operations of an outlined call, and literals that only they read.

    Constant expressions stay while other operations read them.
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
        op.detach()
        op.erase()
