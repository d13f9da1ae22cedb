"""Keys of operations whose regions need the same bytes: a step may contain many copies of one small loop."""

from __future__ import annotations

from collections.abc import Set
from itertools import chain

from xdsl.ir import Operation, SSAValue

from ...rules.names import name_of

Key = tuple[object, ...]


def region_key(op: Operation, constants: Set[SSAValue], strided: Set[SSAValue]) -> Key:
    """A key that is equal for operations whose regions need equally many bytes.

    It contains operation names, use-def edges and types, and for captured values whether they are in `constants` or in
    `strided`; no attributes. It contains ids of types, and is valid as long as these types live.
    """
    numbers = dict[int, int]()
    key = list[object]()

    def add_use(value: SSAValue) -> None:
        if (number := numbers.get(id(value))) is None:
            # A captured value.
            numbers[id(value)] = number = len(numbers)
            key.extend((id(value.type), value in constants, value in strided))
        key.append(number)

    def add_def(value: SSAValue) -> None:
        numbers[id(value)] = len(numbers)
        key.append(id(value.type))

    def visit(current: Operation) -> None:
        key.extend((name_of(current), len(current.operands), len(current.results), len(current.regions)))
        for operand in current.operands:
            add_use(operand)
        for result in current.results:
            add_def(result)
        for block in chain.from_iterable(region.blocks for region in current.regions):
            key.append(len(block.args))
            for argument in block.args:
                add_def(argument)
            for inner in block.ops:
                visit(inner)
            key.append(None)

    visit(op)
    return tuple(key)
