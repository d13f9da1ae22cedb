"""Build the bodies of outlined functions from the current operations of inlined calls.

    %1 = stablehlo.multiply %y, %c   // origin (call 3, operation 2)         func.func private @f(%a, %b) {
    %2 = stablehlo.tanh %1           // origin (call 3, operation 3)    ->     %0 = stablehlo.constant …
                                                                               %1 = stablehlo.multiply %a, %0
                                                                               %2 = stablehlo.tanh %1

The template is the function before inlining. The operands of the current operations must correspond to the operands in
the template. If several operations of the template read the same argument, the matching current operations must all
read the same value. If an operation of the template reads the result of another operation, the matching current
operation must read the result of the matching operation in the same call, or a constant, which is cloned into the body.
The body is cloned from the current operations, so it would compute the same values even if the match were wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...dialects.cloning import clone_of
from ...dialects.stablehlo.control import OptimizationBarrierOp
from ...support.operations import every_operation, name_of, operations_in, terminator_of
from .templates import CallTemplate, Parts, operand_pairs, part_called, result_pairs, same_kind, strip_operation


class LeftInlined(Exception):
    """Raised with the reason why the operations of a call cannot be outlined."""


@dataclass(frozen=True)
class MatchedCall:
    """The operations of one inlined call, matched to the template of its callee.

    Attributes:
        template: The function before inlining.
        parts: The functions that were outlined earlier from only a part of a template's operations.
        members: The operations of the call, by their index in the template.
        constants: The values that are computed only from constants.
        current_values: The current value of each template value that operations read.
        cloned: The operations outside the call that the body clones, by their index in the template.
    """

    template: CallTemplate
    parts: Parts
    members: Mapping[int, Operation]
    constants: Collection[SSAValue]
    current_values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    cloned: dict[int, Operation] = field(default_factory=dict[int, Operation])

    @property
    def is_exact(self) -> bool:
        """Whether the operands match the template exactly: no operation calls a part of a function, and regions are
        equal to the corresponding regions of the template.

        If the match also covers all operations of the template, the body equals the body of the template.
        """
        present = {**self.cloned, **self.members}
        return all(
            part_called(op, self.template.operations[index], self.parts) is None
            and (not op.regions or _have_equal_regions(op, self.template.operations[index]))
            for index, op in present.items()
        )

    def match_all(self) -> None:
        """Match the operands of all operations of the call.

        Raises:
            LeftInlined: An operand does not correspond to the template.
        """
        for index, op in self.members.items():
            self._match(index, op)

    def pairs(self, op: Operation, template_op: Operation) -> Iterator[tuple[Operation, Operation]]:
        """Yield the operation and all operations in its regions, each with its counterpart in the template."""
        if not (op.regions or template_op.regions) and same_kind(op, template_op, self.parts):
            yield op, template_op
            return
        inside, template_inside = every_operation(op), every_operation(template_op)
        if len(inside) != len(template_inside):
            raise LeftInlined("the operations in its loop have changed")
        for inner, original in zip(inside, template_inside, strict=True):
            if not same_kind(inner, original, self.parts):
                raise LeftInlined(
                    f"{name_of(original)} was replaced by {name_of(inner)}, or its attributes have changed"
                )
            yield inner, original

    def _match(self, index: int, op: Operation) -> None:
        for inner, original in self.pairs(op, self.template.operations[index]):
            operands = tuple(inner._operands)  # pyright: ignore[reportPrivateUsage]
            for place, original_operand in operand_pairs(inner, original, self.parts):
                if not _is_inside(operands[place], op):
                    self._record(inner, operands[place], original_operand)

    def _record(self, reader: Operation, value: SSAValue, template_value: SSAValue) -> None:
        """Record that `reader` reads `value` where its counterpart in the template reads `template_value`.

        Raises:
            LeftInlined: `value` does not correspond to `template_value`.
        """
        if isinstance(template_value, BlockArgument):
            if template_value.block is not self.template.block:
                raise LeftInlined("an operation of its loop reads an outer value instead of a loop argument")
            self.current_values[template_value] = _later_value(self.current_values.get(template_value, value), value)
            return
        assert isinstance(template_value, OpResult), "a value is an argument or a result"
        index = self.template.index[template_value.op]
        own = None
        if (op := self.members.get(index)) is not None:
            pairs = result_pairs(op, template_value.op, self.parts)
            current_results = {template_result: result for result, template_result in pairs}
            if (own := current_results.get(template_value)) is None:
                raise LeftInlined(f"the operand of {name_of(reader)} is no longer a result of {name_of(op)}")
        if own is not value:
            self._clone(index, template_value, value)
        self.current_values.setdefault(template_value, value if own is None else own)

    def _clone(self, index: int, template_value: OpResult, value: SSAValue) -> None:
        if not isinstance(value, OpResult) or value.index != template_value.index:
            raise LeftInlined(
                f"it reads a different value where the called function reads the result of {name_of(template_value.op)}"
            )
        if value not in self.constants and all(member is not value.op for member in self.members.values()):
            raise LeftInlined(
                f"it reads the result of a {name_of(value.op)} outside the call instead of a result inside the call"
            )
        if self.cloned.setdefault(index, value.op) is value.op or value in self.constants:
            # CSE merged a literal with an equal literal elsewhere, or merged two operations of this call.
            self._match(index, value.op)
            return
        result = f"the result of {name_of(template_value.op)}"
        raise LeftInlined(f"it reads two different values where the called function reads only {result}")


def _have_equal_regions(op: Operation, other: Operation) -> bool:
    """Return whether two operations have equal regions. The caller has checked that the inner operations have the same
    kinds.

    Regions are equal if their arguments have the same types, and their operations read corresponding values of the
    regions and no outside values.
    """
    if len(op.regions) != len(other.regions):
        return False
    numbers, other_numbers = dict[int, int](), dict[int, int]()
    for region, other_region in zip(op.regions, other.regions, strict=True):
        block, other_block = region.first_block, other_region.first_block
        if block is None or other_block is None or block.next_block is not None or other_block.next_block is not None:
            return False
        inner, other_inner = operations_in(block), operations_in(other_block)
        if block.arg_types != other_block.arg_types or len(inner) != len(other_inner):
            return False
        _number(block.args, numbers)
        _number(other_block.args, other_numbers)
        for inner_op, other_op in zip(inner, other_inner, strict=True):
            read = [numbers.get(id(value)) for value in inner_op.operands]
            if inner_op.regions or other_op.regions or None in read:
                return False
            if read != [other_numbers.get(id(value)) for value in other_op.operands]:
                return False
            _number(inner_op.results, numbers)
            _number(other_op.results, other_numbers)
    return True


def _number(values: Iterable[SSAValue], numbers: dict[int, int]) -> None:
    for value in values:
        numbers[id(value)] = len(numbers)


def _is_inside(value: SSAValue, op: Operation) -> bool:
    holder = value.owner.parent_op() if op.regions else None
    while holder is not None and holder is not op:
        holder = holder.parent_op()
    return holder is op


def _later_value(first: SSAValue, second: SSAValue) -> SSAValue:
    """Return the later of two values. One of them must be derived from the other through barriers.

    The restored call may read the later value, because it may run later than the original call.

    Raises:
        LeftInlined: Neither value is derived from the other.
    """
    if first is second or _is_derived_by_barriers(first, second):
        return first
    if _is_derived_by_barriers(second, first):
        return second
    raise LeftInlined("an argument of the call would have two different values")


def _is_derived_by_barriers(derived: SSAValue, value: SSAValue) -> bool:
    while isinstance(derived, OpResult) and name_of(derived.op) == OptimizationBarrierOp.name:
        derived = derived.op.operands[derived.index]
        if derived is value:
            return True
    return False


@dataclass(frozen=True)
class InlinedBody:
    """The body of an outlined function.

    Attributes:
        block: The block with the operations.
        arguments: For each argument, its index in the template and the value that the call passes.
        returned: The values of the template that the function returns.
    """

    block: Block
    arguments: tuple[tuple[int, SSAValue], ...]
    returned: tuple[SSAValue, ...]

    @property
    def call_operands(self) -> list[SSAValue]:
        return [value for _, value in self.arguments]


def body_of(matched: MatchedCall, arguments: Mapping[int, SSAValue], returned: tuple[SSAValue, ...]) -> InlinedBody:
    """Build the body of an outlined function. Its operations have the order and the locations of the template.

    Args:
        matched: The operations of the call.
        arguments: The values that the call passes, by the index of the argument in the template.
        returned: The values of the template that the function returns.

    Raises:
        LeftInlined: A returned value is no longer defined.
    """
    template = matched.template
    block = Block(arg_types=[value.type for value in arguments.values()])
    new = dict[SSAValue, SSAValue]()
    for argument, index in zip(block.args, arguments, strict=True):
        new[template.block.args[index]] = argument
        argument.name_hint = template.block.args[index].name_hint
    for index, op in sorted({**matched.cloned, **matched.members}.items()):
        block.add_op(_clone_operation(matched, index, op, new))
    if not all(value in new for value in returned):
        raise LeftInlined("it no longer defines one of its results")
    return_op = ReturnOp(*(new[value] for value in returned))
    return_op.location = template.locations[template.index[terminator_of(template.block)]].location
    block.add_op(return_op)
    return InlinedBody(block, tuple(arguments.items()), returned)


def _clone_operation(matched: MatchedCall, index: int, op: Operation, new: dict[SSAValue, SSAValue]) -> Operation:
    template_op, located = matched.template.operations[index], matched.template.locations[index]
    copy = clone_of(op)
    for inner, original, located_inner, current in zip(
        *map(every_operation, (copy, template_op, located, op)), strict=True
    ):
        strip_operation(inner)
        inner.location = located_inner.location
        for place, value in operand_pairs(current, original, matched.parts):
            if not _is_inside(current.operands[place], op):
                inner.operands[place] = new[value]
    for result, original_result in result_pairs(copy, template_op, matched.parts):
        new[original_result] = result
        result.name_hint = original_result.name_hint
    return copy
