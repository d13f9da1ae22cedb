"""Library kernels of XLA:CPU: a sum or a maximum, together with operations around it.

As in `xla/backends/cpu/transforms/library_rewriter.cc`, before other fusion: from the last reduction to the first, a
kernel absorbs producers of its operands without other readers, and then the reader of its result if there is only one.
A library kernel is never fused with others: its operands and its results are stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .program import KernelProgram
from .traits import Trait

# Maximum number of operations in a kernel plus values that it reads from outside.
_LARGEST = 100


def library_kernels(program: KernelProgram) -> Mapping[int, int]:
    """For each operation inside of a library kernel the root of the kernel, whose result is stored."""
    grouping = _Grouping(program)
    for op in reversed(range(len(program))):
        if program.traits[op] & Trait.STARTS and op not in grouping.group_of:
            grouping.grow(_Group(op, {op}))
    return {op: group.root for op, group in grouping.group_of.items()}


@dataclass
class _Group:
    root: int
    inside: set[int]


@dataclass
class _Grouping:
    program: KernelProgram
    group_of: dict[int, _Group] = field(default_factory=dict[int, _Group])

    def grow(self, group: _Group) -> None:
        self.group_of[group.root] = group
        while self._grow_once(group):
            pass

    def _grow_once(self, group: _Group) -> bool:
        """Absorb neighbours breadth first until none remains or the kernel is full. Return whether it grew."""
        queue = deque[tuple[int, bool]]()
        visited = set[int]()
        changed = False

        def enqueue(neighbours: Iterable[tuple[int, bool]]) -> None:
            for op, up in neighbours:
                if op not in visited:
                    visited.add(op)
                    queue.append((op, up))

        enqueue(self._above(group, group.inside))
        enqueue(self._below(group))
        while queue and self._size(group) < _LARGEST:
            op, up = queue.popleft()
            other = self.group_of.get(op)
            if other is group:
                continue
            if other is not None:
                self._merge(group, other, up)
                changed = True
                continue
            if not self.program.traits[op] & Trait.LIBRARY:
                continue
            group.inside.add(op)
            self.group_of[op] = group
            changed = True
            if up:
                enqueue(self._above(group, [op]))
            else:
                group.root = op
                enqueue(self._below(group))
        return changed

    def _above(self, group: _Group, ops: Iterable[int]) -> Iterator[tuple[int, bool]]:
        """Producers of the operands that have no reader outside of the group."""
        program = self.program
        for op in ops:
            for source in program.sources[op]:
                if source not in group.inside and group.inside.issuperset(program.readers[source]):
                    yield source, True

    def _below(self, group: _Group) -> Iterator[tuple[int, bool]]:
        readers = self.program.readers[group.root]
        if len(readers) == 1:
            yield readers[0], False

    def _merge(self, group: _Group, other: _Group, up: bool) -> None:
        if not up:
            group.root = other.root
        group.inside |= other.inside
        for op in other.inside:
            self.group_of[op] = group

    def _size(self, group: _Group) -> int:
        read = {
            value
            for op in group.inside
            for value in self.program.reads[op]
            if self.program.maker[self.program.root[value]] not in group.inside
        }
        return len(group.inside) + len(read)
