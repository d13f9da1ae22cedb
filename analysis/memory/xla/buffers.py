"""Which memory XLA:CPU gives to the stored values of a block, and from when to when each needs it.

As XLA's buffer assignment does (`xla/service/buffer_assignment.cc`): what passes a barrier or a loop stays where it
is; an elementwise kernel writes over an operand that dies with it; a value may lie where a result of the step is
written later; an argument that is donated is copied when something that is not needed for its new value reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby

from ....rules.fusion import WRITES_OVER
from ....rules.storage import FORWARDS
from .fusion import Fusion
from .taken import Taken
from .traits import Trait


@dataclass(frozen=True)
class Life:
    """A stored value; `first` and `last` are positions in the schedule, both inclusive."""

    value: int
    bytes: int
    first: int
    last: int


def lives(fused: Fusion, schedule: Sequence[int]) -> list[Life]:
    """One for each storage that is made in the block, in the order of the schedule."""
    program, owners = fused.program, storage_owners(fused)
    position = {op: index for index, op in enumerate(schedule)}
    last = dict[int, int]()
    for op in schedule:
        for value in fused.reads[op]:
            last[owners.get(value, value)] = position[op]
    for value, owner in owners.items():
        last[owner] = max(last.get(owner, 0), position[program.maker[value]])
    return [
        Life(result, program.sizes[result], index, max(index, last.get(result, index)))
        for index, op in enumerate(schedule)
        for result in program.makes[op]
        if result not in program.constants and result not in owners
    ]


def storage_owners(fused: Fusion) -> Mapping[int, int]:
    """Results of barriers and loops, and the value in whose place each is."""
    program, readers = fused.program, dict[int, set[int]]()
    for op, values in fused.reads.items():
        for value in values:
            readers.setdefault(value, set()).add(op)
    owners = dict[int, int]()
    for op in fused.kernels:
        if program.names[op] not in FORWARDS and program.names[op] not in WRITES_OVER:
            continue
        for result, operand in zip(program.makes[op], program.operands[op], strict=False):
            value = program.root[operand]
            # A loop overwrites its initial values: it starts from copies of those that others read or own.
            own = program.maker[value] in fused.reads and value not in program.constants
            if program.names[op] in FORWARDS or (own and readers.get(value) == {op}):
                owners[result] = owners.get(value, value)
    return owners


def returned_storages(fused: Fusion) -> set[int]:
    owners = storage_owners(fused)
    return {owners.get(value, value) for value in fused.program.returned}


def written_in_place(found: Sequence[Life], fused: Fusion, schedule: Sequence[int], kept: Set[int]) -> list[Life]:
    """The lives, each shorter by one step where an elementwise kernel takes its place. `kept` are never overwritten."""
    dying = {life.value: life for life in found if life.value not in kept}
    shorter = dict[int, Life]()
    for life in found:
        op = schedule[life.first]
        if not fused.program.traits[op] & Trait.FUSIBLE or op in fused.library:
            continue
        for value in fused.reads[op]:
            operand = dying.get(value)
            if operand is not None and operand.last == life.first and operand.bytes == life.bytes:
                shorter[value] = replace(operand, last=operand.last - 1)
                del dying[value]
                break
    return [shorter.get(life.value, life) for life in found]


def outside_results(found: Sequence[Life], places: Sequence[list[Life]]) -> list[Life]:
    """The lives that find no place where a result of at least their size is written, the largest choosing first.

    Each of `places` begins with the result; the lives that are put there are added.
    """
    rest: list[Life] = []
    listed = list(reversed(places))
    taken = Taken(1 + max([life.last for place in (found, *places) for life in place], default=0))
    for number, place in enumerate(listed):
        for life in place:
            taken.put(number, life.first, life.last)
    for size, alike in groupby(sorted(found, key=lambda life: (-life.bytes, life.first)), key=lambda life: life.bytes):
        large_enough = sum([1 << number for number, place in enumerate(listed) if place[0].bytes >= size])
        for life in alike:
            number = taken.first_free(large_enough, life.first, life.last)
            if number is None:
                rest.append(life)
            else:
                listed[number].append(life)
                taken.put(number, life.first, life.last)
    return rest
