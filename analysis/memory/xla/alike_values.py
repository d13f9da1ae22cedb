"""Equal values that XLA makes once and that several operations overwrite: one of these operations needs no copy.

It is the last one, if use-def edges order all other readers of the value before it (`xla/service/copy_insertion.cc`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from ....planning.graph import OUTSIDE
from ....rules.fusion import WRITES_OVER
from .program import KernelProgram

_LOOP = "stablehlo.while"


def overwritten(program: KernelProgram, op: int) -> Sequence[int]:
    """The operands that an operation may write over."""
    name, operands = program.names[op], program.operands[op]
    return operands if name == _LOOP else operands[:1] if name in WRITES_OVER else ()


def places_of_alike_values(program: KernelProgram) -> Mapping[int, tuple[int, int]]:
    """For each number of `Program.alike` the operation and the operand number that overwrite the value itself."""
    alike = program.alike
    last = {
        alike[value]: (op, index)
        for op, name in enumerate(program.names)
        if name in WRITES_OVER
        for index, value in enumerate(overwritten(program, op))
        if value in alike and index not in program.handed_on.get(op, ())
    }
    readers = dict[int, set[int]]()
    for op, values in enumerate(program.reads) if last else ():
        for value in values:
            if (number := alike.get(value)) in last:
                readers.setdefault(number, set()).add(op)
    return {
        number: (op, index)
        for number, (op, index) in last.items()
        if not _is_captured(program, op, number) and _all_before(program, op, readers[number] - {op})
    }


def _is_captured(program: KernelProgram, op: int, number: int) -> bool:
    """Whether the regions of the loop capture the value too."""
    captured = set(program.reads[op]).difference(program.operands[op])
    return any(program.alike.get(value) == number for value in captured)


def _all_before(program: KernelProgram, op: int, others: Set[int]) -> bool:
    remaining, pending, visited = set(others), [op], set[int]()
    while pending and remaining:
        for source in program.sources[pending.pop()]:
            if source != OUTSIDE and source not in visited:
                visited.add(source)
                remaining.discard(source)
                pending.append(source)
    return not remaining
