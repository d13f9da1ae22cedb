"""The kernels that XLA:CPU takes from a library: a sum or a maximum, with what is computed around it.

As `xla/backends/cpu/transforms/library_rewriter.cc` does, before anything else is fused: from the last reduction to the
first, each takes in what makes its operands, where nobody else reads that, and then what reads its result, where one
operation does. A kernel of the library is never fused with others: what it reads is stored, and so is what it makes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .program import Program
from .traits import Trait

# Operations, with what they read from outside.
_LARGEST = 100


def library_kernels(program: Program) -> Mapping[int, int]:
    """For each operation inside of such a kernel the one whose result leaves it."""
    found = _Grouping(program)
    for op in reversed(range(len(program))):
        if program.traits[op] & Trait.STARTS and op not in found.group_of:
            found.grow(_Group(op, {op}))
    return {op: group.root for op, group in found.group_of.items()}


@dataclass
class _Group:
    root: int
    inside: set[int]


@dataclass
class _Grouping:
    program: Program
    group_of: dict[int, _Group] = field(default_factory=dict[int, _Group])

    def grow(self, group: _Group) -> None:
        self.group_of[group.root] = group
        while self._grow_once(group):
            pass

    def _grow_once(self, group: _Group) -> bool:
        """Breadth first, as far as it goes."""
        waiting = deque[tuple[int, bool]]()
        seen = set[int]()
        changed = False

        def see(found: Iterable[tuple[int, bool]]) -> None:
            for op, up in found:
                if op not in seen:
                    seen.add(op)
                    waiting.append((op, up))

        see(self._above(group, group.inside))
        see(self._below(group))
        while waiting and self._size(group) < _LARGEST:
            op, up = waiting.popleft()
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
                see(self._above(group, [op]))
            else:
                group.root = op
                see(self._below(group))
        return changed

    def _above(self, group: _Group, ops: Iterable[int]) -> Iterator[tuple[int, bool]]:
        """What makes the operands, where nobody outside reads it."""
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
