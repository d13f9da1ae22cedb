"""From the operations of a call, wherever they stand now, to the body of a function that computes the same.

    %1 = stablehlo.multiply %y, %c   // origin (call 3, operation 2)         func.func private @f(%a, %b) {
    %2 = stablehlo.tanh %1           // origin (call 3, operation 3)    ->     %0 = stablehlo.constant …
                                                                               %1 = stablehlo.multiply %a, %0
                                                                               %2 = stablehlo.tanh %1

The template says what each operand was: an argument, or a result of another operation of the function. What it is now
has to fit: one value for each argument; for the others the operation of this call, or constants, which are made anew.
The body is cloned from the operations as they are now, so it computes what they compute, whatever the template says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...rules.names import name_of
from ...support.walk import every_operation
from .templates import Parts, Template, operand_pairs, part_called, result_pairs, same_kind, strip

BARRIER = "stablehlo.optimization_barrier"


class LeftInlined(Exception):
    """The operations of a call cannot be a call again; the reason in words."""


@dataclass(frozen=True)
class Reading:
    """The operations of one call by their index in the template, and what they read.

    `stands`: for each value of the template that is read, the value that stands for it now. `made_anew`: operations
    from outside of the call that come into the body once more.
    """

    template: Template
    parts: Parts
    members: Mapping[int, Operation]
    constants: Collection[SSAValue]
    stands: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    made_anew: dict[int, Operation] = field(default_factory=dict[int, Operation])

    @property
    def says_all(self) -> bool:
        """Whether what was read is all that there is: operations without regions, none of them a call of a part.

        Then whoever has all operations of the template has its body: each reads what it read there.
        """
        present = {**self.made_anew, **self.members}
        return not any(
            op.regions or part_called(op, self.template.operations[index], self.parts) is not None
            for index, op in present.items()
        )

    def read_all(self) -> None:
        """Raises `LeftInlined`."""
        for index, op in self.members.items():
            self._read(index, op)

    def pairs(self, op: Operation, was: Operation) -> Iterator[tuple[Operation, Operation]]:
        """The operation and all that its regions hold, each beside what it was in the template."""
        inside, before = every_operation(op), every_operation(was)
        if len(inside) != len(before):
            raise LeftInlined("its loop holds other operations than before")
        for one, other in zip(inside, before, strict=True):
            if not same_kind(one, other, self.parts):
                raise LeftInlined(f"{name_of(other)} has become {name_of(one)}, or has other attributes")
            yield one, other

    def _read(self, index: int, op: Operation) -> None:
        for one, was in self.pairs(op, self.template.operations[index]):
            read = tuple(one.operands)
            for place, before in operand_pairs(one, was, self.parts):
                if not _is_inside(read[place], op):
                    self._stand(read[place], before)

    def _stand(self, value: SSAValue, before: SSAValue) -> None:
        """`value` is read where the template reads `before`."""
        if isinstance(before, BlockArgument):
            if before.block is not self.template.block:
                raise LeftInlined("a value of a loop comes from outside of it")
            self.stands[before] = _later(self.stands.get(before, value), value)
            return
        assert isinstance(before, OpResult), "a value is an argument or a result"
        index = self.template.index[before.op]
        own = None
        if (op := self.members.get(index)) is not None:
            made = {was: result for result, was in result_pairs(op, before.op, self.parts)}
            if (own := made.get(before)) is None:
                raise LeftInlined(f"{name_of(op)} does not make what it reads any more")
        if own is not value:
            self._make_anew(index, before, value)
        self.stands.setdefault(before, value if own is None else own)

    def _make_anew(self, index: int, before: OpResult, value: SSAValue) -> None:
        if not isinstance(value, OpResult) or value.index != before.index:
            raise LeftInlined(f"it reads another value in place of that of {name_of(before.op)}")
        if value not in self.constants and value.op not in self.members.values():
            raise LeftInlined(f"it reads {name_of(value.op)} from outside in place of its own")
        if self.made_anew.setdefault(index, value.op) is value.op or value in self.constants:
            # A literal that was merged with one elsewhere; or a twin within this call that was merged with another.
            self._read(index, value.op)
            return
        raise LeftInlined(f"it reads two values in place of that of {name_of(before.op)}")


def _is_inside(value: SSAValue, op: Operation) -> bool:
    """Whether the value is made in a region of the operation."""
    holder = value.owner.parent_op() if op.regions else None
    while holder is not None and holder is not op:
        holder = holder.parent_op()
    return holder is op


def _later(one: SSAValue, other: SSAValue) -> SSAValue:
    """Of a value and the same value behind barriers the latter: a call that waits for more is right too."""
    if one is other or _passes(one, other):
        return one
    if _passes(other, one):
        return other
    raise LeftInlined("an argument has two values")


def _passes(behind: SSAValue, value: SSAValue) -> bool:
    while isinstance(behind, OpResult) and name_of(behind.op) == BARRIER:
        behind = behind.op.operands[behind.index]
        if behind is value:
            return True
    return False


@dataclass(frozen=True)
class Body:
    """A body, and what goes with it: `arguments` are those of the template that it has, with what is passed for them;
    `returned` the values of the template."""

    block: Block
    arguments: tuple[tuple[int, SSAValue], ...]
    returned: tuple[SSAValue, ...]

    @property
    def passed(self) -> list[SSAValue]:
        return [value for _, value in self.arguments]


def body_of(reading: Reading, arguments: Mapping[int, SSAValue], returned: tuple[SSAValue, ...]) -> Body:
    """In the order of the template, at the places in the source that its operations have there."""
    template = reading.template
    block = Block(arg_types=[value.type for value in arguments.values()])
    new = dict[SSAValue, SSAValue]()
    for argument, index in zip(block.args, arguments, strict=True):
        new[template.block.args[index]] = argument
        argument.name_hint = template.block.args[index].name_hint
    for index, op in sorted({**reading.made_anew, **reading.members}.items()):
        block.add_op(_written(reading, index, op, new))
    if not all(value in new for value in returned):
        raise LeftInlined("a result is not made by it any more")
    end = ReturnOp(*(new[value] for value in returned))
    end.location = template.locations[template.index[_end(template)]].location
    block.add_op(end)
    return Body(block, tuple(arguments.items()), returned)


def _end(template: Template) -> Operation:
    end = template.block.last_op
    assert end is not None, "a function ends with a return"
    return end


def _written(reading: Reading, index: int, op: Operation, new: dict[SSAValue, SSAValue]) -> Operation:
    was, located = reading.template.operations[index], reading.template.locations[index]
    copy = op.clone()
    for one, before, at, actual in zip(copy.walk(), was.walk(), located.walk(), op.walk(), strict=True):
        strip(one)
        one.location = at.location
        for place, read in operand_pairs(actual, before, reading.parts):
            if not _is_inside(actual.operands[place], op):
                one.operands[place] = new[read]
    for result, made in result_pairs(copy, was, reading.parts):
        new[made] = result
        result.name_hint = made.name_hint
    return copy
