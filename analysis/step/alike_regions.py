"""When the regions of two operations hold the same bytes: a step has the same small loop many times over."""

from __future__ import annotations

from collections.abc import Set
from itertools import chain

from xdsl.ir import Operation, SSAValue

from ...rules.names import name_of

Key = tuple[object, ...]


def region_key(op: Operation, constants: Set[SSAValue], strided: Set[SSAValue]) -> Key:
    """Equal for operations whose regions hold equally many bytes, as long as the types live whose ids are in it.

    What counts is the names, who reads what, and the types; and of values from outside whether they come from
    `constants`, or are `strided`. Attributes do not.
    """
    seen = dict[int, int]()
    told = list[object]()

    def tell(value: SSAValue) -> None:
        if (number := seen.get(id(value))) is None:
            # A value from outside.
            seen[id(value)] = number = len(seen)
            told.extend((id(value.type), value in constants, value in strided))
        told.append(number)

    def make(value: SSAValue) -> None:
        seen[id(value)] = len(seen)
        told.append(id(value.type))

    def visit(one: Operation) -> None:
        told.extend((name_of(one), len(one.operands), len(one.results), len(one.regions)))
        for operand in one.operands:
            tell(operand)
        for result in one.results:
            make(result)
        for block in chain.from_iterable(region.blocks for region in one.regions):
            told.append(len(block.args))
            for argument in block.args:
                make(argument)
            for inner in block.ops:
                visit(inner)
            told.append(None)

    visit(op)
    return tuple(told)
