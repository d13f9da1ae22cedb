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
    """What passes a barrier or a loop, or is an update in place, and the value in whose place each is."""
    program, readers, owners = fused.program, _readers(fused), dict[int, int]()
    for op in fused.kernels:
        forwards = program.names[op] in FORWARDS
        if not forwards and program.names[op] not in WRITES_OVER:
            continue
        unchanged = program.handed_on.get(op, frozenset())
        values = [program.root[operand] for operand in program.operands[op]]
        for index, (result, value) in enumerate(zip(program.makes[op], values, strict=False)):
            # A loop overwrites its initial values: it starts from copies of those that others read or own, and of
            # those that it begins with twice.
            own = program.maker[value] in fused.reads and value not in program.constants
            once = own and values.index(value) == index
            if forwards or index in unchanged or (once and all_before(op, readers[value] - {op}, fused)):
                owners[result] = owners.get(value, value)
    return owners


def all_before(op: int, others: Set[int], fused: Fusion) -> bool:
    """Whether the order that operands alone give has `op` behind all `others`."""
    left, pending, seen = set(others), [op], set[int]()
    while pending and left:
        for value in fused.reads[pending.pop()]:
            maker = fused.program.maker[value]
            if maker in fused.reads and maker not in seen:
                seen.add(maker)
                left.discard(maker)
                pending.append(maker)
    return not left


def _readers(fused: Fusion) -> Mapping[int, Set[int]]:
    found = dict[int, set[int]]()
    for op, values in fused.reads.items():
        for value in values:
            found.setdefault(value, set()).add(op)
    return found


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
