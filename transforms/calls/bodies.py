"""Build the body of a function from the operations of an inlined call, wherever they are now.

    %1 = stablehlo.multiply %y, %c   // origin (call 3, operation 2)         func.func private @f(%a, %b) {
    %2 = stablehlo.tanh %1           // origin (call 3, operation 3)    ->     %0 = stablehlo.constant …
                                                                               %1 = stablehlo.multiply %a, %0
                                                                               %2 = stablehlo.tanh %1

The template holds the original operands: arguments, or results of other operations of the function. The current
operands must match: one value for each argument, and for results the operation of this call, or constants, which are
cloned into the body. The body is cloned from the current operations, so it computes the same as they do in any case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...support.operations import every_operation, name_of
from .templates import CallTemplate, Parts, operand_pairs, part_called, result_pairs, same_kind, strip

BARRIER = "stablehlo.optimization_barrier"


class LeftInlined(Exception):
    """The reason why the operations of a call cannot be outlined."""


@dataclass(frozen=True)
class CallReading:
    """The operations of one call by their index in the template, and their operands.

    `stands`: from each value of the template that is read to its current value. `cloned`: operations from outside of
    the call that the body clones.
    """

    template: CallTemplate
    parts: Parts
    members: Mapping[int, Operation]
    constants: Collection[SSAValue]
    stands: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    cloned: dict[int, Operation] = field(default_factory=dict[int, Operation])

    @property
    def is_exact(self) -> bool:
        """Whether the operands match the template exactly: no operation has regions or calls a part.

        Then a reading with all operations of the template has the template's body.
        """
        present = {**self.cloned, **self.members}
        return not any(
            op.regions or part_called(op, self.template.operations[index], self.parts) is not None
            for index, op in present.items()
        )

    def read_all(self) -> None:
        """Match the operands of all members. Raises `LeftInlined`."""
        for index, op in self.members.items():
            self._read(index, op)

    def pairs(self, op: Operation, was: Operation) -> Iterator[tuple[Operation, Operation]]:
        """Yield the operation and those in its regions, each with its counterpart in the template."""
        inside, before = every_operation(op), every_operation(was)
        if len(inside) != len(before):
            raise LeftInlined("its loop holds other operations than before")
        for inner, original in zip(inside, before, strict=True):
            if not same_kind(inner, original, self.parts):
                raise LeftInlined(f"{name_of(original)} has become {name_of(inner)}, or has other attributes")
            yield inner, original

    def _read(self, index: int, op: Operation) -> None:
        for inner, original in self.pairs(op, self.template.operations[index]):
            operands = tuple(inner.operands)
            for place, original_operand in operand_pairs(inner, original, self.parts):
                if not _is_inside(operands[place], op):
                    self._stand(operands[place], original_operand)

    def _stand(self, value: SSAValue, before: SSAValue) -> None:
        """Record that `value` is read where the template reads `before`."""
        if isinstance(before, BlockArgument):
            if before.block is not self.template.block:
                raise LeftInlined("a value of a loop comes from outside of it")
            self.stands[before] = _later(self.stands.get(before, value), value)
            return
        assert isinstance(before, OpResult), "a value is an argument or a result"
        index = self.template.index[before.op]
        own = None
        if (op := self.members.get(index)) is not None:
            current_results = {was: result for result, was in result_pairs(op, before.op, self.parts)}
            if (own := current_results.get(before)) is None:
                raise LeftInlined(f"{name_of(op)} no longer defines its operand")
        if own is not value:
            self._clone(index, before, value)
        self.stands.setdefault(before, value if own is None else own)

    def _clone(self, index: int, before: OpResult, value: SSAValue) -> None:
        if not isinstance(value, OpResult) or value.index != before.index:
            raise LeftInlined(f"it reads another value instead of that of {name_of(before.op)}")
        if value not in self.constants and value.op not in self.members.values():
            raise LeftInlined(f"it reads {name_of(value.op)} from outside instead of its own")
        if self.cloned.setdefault(index, value.op) is value.op or value in self.constants:
            # A literal merged with one elsewhere, or an operation of this call merged with an equal one.
            self._read(index, value.op)
            return
        raise LeftInlined(f"it reads two values instead of that of {name_of(before.op)}")


def _is_inside(value: SSAValue, op: Operation) -> bool:
    """Return whether the value is defined in a region of the operation."""
    holder = value.owner.parent_op() if op.regions else None
    while holder is not None and holder is not op:
        holder = holder.parent_op()
    return holder is op


def _later(first: SSAValue, second: SSAValue) -> SSAValue:
    """Return the later of a value and the same value behind barriers: a call that waits longer is also correct."""
    if first is second or _passes(first, second):
        return first
    if _passes(second, first):
        return second
    raise LeftInlined("an argument has two values")


def _passes(behind: SSAValue, value: SSAValue) -> bool:
    while isinstance(behind, OpResult) and name_of(behind.op) == BARRIER:
        behind = behind.op.operands[behind.index]
        if behind is value:
            return True
    return False


@dataclass(frozen=True)
class InlinedBody:
    """A function body. `arguments`: index in the template and passed value of each argument; `returned`: values of the
    template."""

    block: Block
    arguments: tuple[tuple[int, SSAValue], ...]
    returned: tuple[SSAValue, ...]

    @property
    def passed(self) -> list[SSAValue]:
        return [value for _, value in self.arguments]


def body_of(reading: CallReading, arguments: Mapping[int, SSAValue], returned: tuple[SSAValue, ...]) -> InlinedBody:
    """Build the body in the order of the template, with the locations of its operations."""
    template = reading.template
    block = Block(arg_types=[value.type for value in arguments.values()])
    new = dict[SSAValue, SSAValue]()
    for argument, index in zip(block.args, arguments, strict=True):
        new[template.block.args[index]] = argument
        argument.name_hint = template.block.args[index].name_hint
    for index, op in sorted({**reading.cloned, **reading.members}.items()):
        block.add_op(_clone_operation(reading, index, op, new))
    if not all(value in new for value in returned):
        raise LeftInlined("it no longer defines one of its results")
    end = ReturnOp(*(new[value] for value in returned))
    end.location = template.locations[template.index[_end(template)]].location
    block.add_op(end)
    return InlinedBody(block, tuple(arguments.items()), returned)


def _end(template: CallTemplate) -> Operation:
    end = template.block.last_op
    assert end is not None, "a function ends with a return"
    return end


def _clone_operation(reading: CallReading, index: int, op: Operation, new: dict[SSAValue, SSAValue]) -> Operation:
    template_op, located = reading.template.operations[index], reading.template.locations[index]
    copy = op.clone()
    for inner, original, located_inner, current in zip(
        copy.walk(), template_op.walk(), located.walk(), op.walk(), strict=True
    ):
        strip(inner)
        inner.location = located_inner.location
        for place, value in operand_pairs(current, original, reading.parts):
            if not _is_inside(current.operands[place], op):
                inner.operands[place] = new[value]
    for result, original_result in result_pairs(copy, template_op, reading.parts):
        new[original_result] = result
        result.name_hint = original_result.name_hint
    return copy
