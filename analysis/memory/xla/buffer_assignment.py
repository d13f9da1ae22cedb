"""Buffer assignment of XLA:CPU: the live range of each stored value, and the values that share memory.

These rules follow XLA's buffer assignment (`xla/service/buffer_assignment.cc`):

- A value that passes through a barrier or a loop stays in place.
- An elementwise kernel overwrites an operand that dies with it.
- A value may use the memory of a result of the step until that result is written.
- A donated argument is copied if one of its readers may run after its memory is overwritten.

As in XLA's copy insertion (`xla/service/copy_insertion.cc`), the new value of a loop's carry overwrites the old value.
The old value is copied first if one of its readers may run later. Only use-def edges, not the schedule, determine
whether a reader may run later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby

from ....planning.graph import NO_MAKER
from ....rules.buffers import FORWARDS
from ....rules.fusion import WRITES_OVER
from .kernel_fusion import Fusion
from .traits import Trait

_BEFORE = 1
"""Number of steps before step 0, since step -1 is also valid."""


class OccupiedPlaces:
    """The set of places that are occupied at each step, as a segment tree over the steps.

    A place is a buffer that values with disjoint live ranges share. For each node of the tree, `_throughout` holds the
    places that one `put` occupied at all steps of the node, and `_somewhere` the places that are occupied at any of its
    steps; both are bit sets.
    """

    def __init__(self, steps: int):
        """Create an empty set for the steps 0 to `steps` - 1."""
        self._leaves = 1 << (steps + _BEFORE).bit_length()
        self._throughout = [0] * (2 * self._leaves)
        self._somewhere = [0] * (2 * self._leaves)

    def put(self, place: int, first: int, last: int) -> None:
        """Occupy the place, which may be occupied already, from step `first` to step `last`, both inclusive."""
        bit = 1 << place
        for node in self._nodes(first, last):
            self._throughout[node] |= bit
            while node and not self._somewhere[node] & bit:
                self._somewhere[node] |= bit
                node >>= 1

    def first_free(self, candidates: int, first: int, last: int) -> int | None:
        """Return the lowest place in the bit set `candidates` that is free from step `first` to step `last`; None if
        there is no such place."""
        occupied_places = 0
        for node in self._nodes(first, last):
            occupied_places |= self._somewhere[node]
            while node:
                occupied_places |= self._throughout[node]
                node >>= 1
        free = candidates & ~occupied_places
        return (free & -free).bit_length() - 1 if free else None

    def _nodes(self, first: int, last: int) -> Iterator[int]:
        """Yield the disjoint nodes that together cover exactly these steps."""
        low, high = self._leaves + first + _BEFORE, self._leaves + last + _BEFORE + 1
        while low < high:
            if low & 1:
                yield low
                low += 1
            if high & 1:
                high -= 1
                yield high
            low >>= 1
            high >>= 1


@dataclass(frozen=True)
class Life:
    """The live range of a stored value.

    `first` and `last` are positions in the schedule, both inclusive.
    """

    value: int
    bytes: int
    first: int
    last: int


def lives(fused: Fusion, schedule: Sequence[int], owners: Mapping[int, int]) -> list[Life]:
    """Return the live range of each storage that the block creates, in the order of the schedule.

    `owners`: see `storage_owners`.
    """
    program = fused.program
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
    """Map each value with a shared storage to the value that owns the storage.

    Three kinds of results share the storage of an operand: results of barriers, results of loops, and results that are
    written over the operand.
    """
    program, owners = fused.program, dict[int, int]()
    sharing = [op for op in fused.reads if program.names[op] in FORWARDS or program.names[op] in WRITES_OVER]
    readers = _readers(fused) if any(program.names[op] not in FORWARDS for op in sharing) else dict[int, Set[int]]()
    for op in sharing:
        forwards = program.names[op] in FORWARDS
        unchanged = program.handed_on.get(op, frozenset())
        values = [program.root[operand] for operand in program.operands[op]]
        for index, (result, value) in enumerate(zip(program.makes[op], values, strict=False)):
            # A loop overwrites its initial values. It copies the values that other operations read or own, and those
            # that are passed to it twice.
            own = program.maker[value] in fused.reads and value not in program.constants
            once = own and values.index(value) == index
            if forwards or index in unchanged or (once and all_before(op, readers[value] - {op}, fused)):
                owners[result] = owners.get(value, value)
    return owners


def all_before(op: int, others: Set[int], fused: Fusion) -> bool:
    """Return whether use-def edges order all operations in `others` before `op`."""
    remaining = set(others)
    pending = [op]
    visited = set[int]()
    # Operands precede their readers, so no path from an operation before the first of `others` leads to one of them.
    first = min(others, default=op)
    while pending and remaining:
        for value in fused.reads[pending.pop()]:
            maker = fused.program.maker[value]
            if maker >= first and maker in fused.reads and maker not in visited:
                visited.add(maker)
                remaining.discard(maker)
                pending.append(maker)
    return not remaining


def _readers(fused: Fusion) -> Mapping[int, Set[int]]:
    readers = dict[int, set[int]]()
    for op, values in fused.reads.items():
        for value in values:
            readers.setdefault(value, set()).add(op)
    return readers


def returned_storages(fused: Fusion, owners: Mapping[int, int]) -> set[int]:
    """Return the storages of the values that the block returns."""
    return {owners.get(value, value) for value in fused.program.returned}


def write_in_place(live_ranges: Sequence[Life], fused: Fusion, schedule: Sequence[int], kept: Set[int]) -> list[Life]:
    """Shorten the live range of each value by one step if the last kernel that reads it overwrites it.

    `kept`: values that are never overwritten.
    """
    dying = {life.value: life for life in live_ranges if life.value not in kept}
    shorter = dict[int, Life]()
    for life in live_ranges:
        op = schedule[life.first]
        if not fused.program.traits[op] & Trait.FUSIBLE or op in fused.library:
            continue
        for value in fused.reads[op]:
            operand = dying.get(value)
            if operand is not None and operand.last == life.first and operand.bytes == life.bytes:
                shorter[value] = replace(operand, last=operand.last - 1)
                del dying[value]
                break
    return [shorter.get(life.value, life) for life in live_ranges]


def outside_results(live_ranges: Sequence[Life], places: Sequence[list[Life]]) -> list[Life]:
    """Return the live ranges that do not fit in the memory of any result.

    The largest values are placed first, each into a result of at least its size.

    Args:
        live_ranges: The live ranges to place.
        places: For each result, a list that begins with its live range; placed live ranges are appended to it.
    """
    unplaced: list[Life] = []
    numbered_places = list(reversed(places))
    occupied = OccupiedPlaces(1 + max([life.last for place in (live_ranges, *places) for life in place], default=0))
    for number, place in enumerate(numbered_places):
        for life in place:
            occupied.put(number, life.first, life.last)
    by_size = sorted(live_ranges, key=lambda life: (-life.bytes, life.first))
    for size, alike in groupby(by_size, key=lambda life: life.bytes):
        large_enough = sum([1 << number for number, place in enumerate(numbered_places) if place[0].bytes >= size])
        for life in alike:
            number = occupied.first_free(large_enough, life.first, life.last)
            if number is None:
                unplaced.append(life)
            else:
                numbered_places[number].append(life)
                occupied.put(number, life.first, life.last)
    return unplaced


def copied_bytes(body: Fusion) -> int:
    """Return the bytes of the carried values that XLA copies in each iteration of a loop."""
    program = body.program
    owners = storage_owners(body)
    total = 0
    readers = _carry_readers(body, owners)
    for old, value in enumerate(program.returned[: program.arguments]):
        new = owners.get(value, value)
        maker = program.maker[new]
        if new == old or new in program.constants or maker == NO_MAKER:
            # A captured value is copied to the place of the old value.
            total += program.sizes[old] if new != old and new < program.arguments else 0
        elif not _all_read_before(maker, readers.get(old, frozenset()), body):
            total += program.sizes[old]
    return total


def _carry_readers(body: Fusion, owners: Mapping[int, int]) -> Mapping[int, Set[int]]:
    """Map each storage to the kernels that read it, except the terminator."""
    readers = dict[int, set[int]]()
    for op, values in body.reads.items():
        for value in values if op != body.program.terminator else ():
            readers.setdefault(owners.get(value, value), set()).add(op)
    return readers


def _all_read_before(maker: int, readers: Set[int], body: Fusion) -> bool:
    """Return whether all `readers` have run when `maker` writes its result.

    An elementwise `maker` may itself be a reader, because it may overwrite its own operand.
    """
    program = body.program
    by_element = program.traits[maker] & Trait.FUSIBLE and maker not in body.library
    itself = {maker} if program.names[maker] in WRITES_OVER or by_element else set[int]()
    return all_before(maker, readers - itself, body)
