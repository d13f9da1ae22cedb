"""Fusion of operations into kernels by XLA:CPU. Fusion determines which results are stored, and which are computed
inside their readers.

Library kernels are formed first, as in `xla/backends/cpu/transforms/library_rewriter.cc`. From the last reduction to
the first, a kernel absorbs producers of its operands that have no other readers. If its result has only one reader, it
absorbs this reader next. A library kernel is never fused with others: its operands and results are stored.

The remaining operations are fused by the rules of XLA's instruction fusion (`xla/service/instruction_fusion.cc` and its
CPU subclass). A producer is fused into each reader that permits it. Its result is also stored if another reader does
not permit fusion: a matrix product, for example, reads its operands from memory. Two cases affect the bytes most:

- A cheap producer with one large operand is fused into several readers. Each reader recomputes the producer's result,
    so that the producer's *operand* is live until the last reader: for a dropout, for example, the random bits instead
    of the mask.
- An expensive producer (`tanh`) whose readers are computed in several kernels is stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ....planning.graph import NO_MAKER
from .program import KernelProgram
from .traits import Trait

_NOWHERE, _SEVERAL = -1, -2
"""Values for an operation that is not computed in exactly one kernel: no kernel, and several kernels."""
_MAX_KERNEL_SIZE = 100
"""Maximum size of a library kernel: its operations plus the values that it reads from outside."""


def library_kernels(program: KernelProgram) -> Mapping[int, int]:
    """Map each operation inside a library kernel to the root of the kernel: the operation whose result is stored."""
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
        """Absorb neighbours breadth first until no neighbour can be absorbed or the kernel is full. Return whether the
        group has grown."""
        queue = deque[tuple[int, bool]]()
        visited = set[int]()
        changed = False

        def enqueue(neighbours: Iterable[tuple[int, bool]]) -> None:
            for op, up in neighbours:
                if op not in visited:
                    visited.add(op)
                    queue.append((op, up))

        enqueue(self._absorbable_producers(group, group.inside))
        enqueue(self._only_reader(group))
        while queue and self._size(group) < _MAX_KERNEL_SIZE:
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
                enqueue(self._absorbable_producers(group, [op]))
            else:
                group.root = op
                enqueue(self._only_reader(group))
        return changed

    def _absorbable_producers(self, group: _Group, ops: Iterable[int]) -> Iterator[tuple[int, bool]]:
        """Yield the producers of operands of `ops` that have no reader outside the group. Each producer is paired with
        True, because it precedes the group."""
        program = self.program
        for op in ops:
            for source in program.sources[op]:
                if source not in group.inside and group.inside.issuperset(program.readers[source]):
                    yield source, True

    def _only_reader(self, group: _Group) -> Iterator[tuple[int, bool]]:
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


@dataclass(frozen=True)
class Fusion:
    """The kernels of a block.

    Attributes:
        program: The operations that are fused.
        reads: For each operation that is the root of a kernel, the stored values that the kernel reads.
        library: The operations inside library kernels.
    """

    program: KernelProgram
    reads: Mapping[int, tuple[int, ...]]
    library: frozenset[int]

    @property
    def kernels(self) -> tuple[int, ...]:
        return tuple(self.reads)


def fusion(program: KernelProgram) -> Fusion:
    """Fuse the operations of a block into kernels."""
    rules = _Rules(program, _Descendants(program))
    # Go backwards, since the kernel of an operation depends on the kernels of its readers.
    stored = [op for op in reversed(range(len(program))) if rules.decide(op)]
    stored.reverse()
    return Fusion(program, {op: rules.reads(op) for op in stored}, frozenset(rules.library))


class _Descendants:
    """The transitive readers of each operation, as bit sets. Operations are added from the last to the first.

    The row of an operation has one bit for the operation itself and one for each later operation. The last operation
    has the lowest bit. A row is deleted once all producers of its operation have been added, so that the total memory
    is not quadratic in the length of the program.
    """

    def __init__(self, program: KernelProgram):
        self._program = program
        self._last = len(program.sources) - 1
        self._rows = dict[int, int]()
        self._last_needed = dict[int, list[int]]()
        """For each operation, the rows that are not needed by any earlier operation."""
        for op, sources in enumerate(program.sources):
            self._last_needed.setdefault(min(sources, default=op), []).append(op)

    def add(self, op: int) -> None:
        for unneeded in self._last_needed.pop(op + 1, ()):
            del self._rows[unneeded]
        row, sources, rows = 1 << (self._last - op), self._program.sources, self._rows
        for reader in self._program.readers[op]:
            # Reshapes and constants are not sources of their readers.
            if op in sources[reader]:
                row |= rows[reader]
        rows[op] = row

    def depends_on(self, op: int, producer: int) -> bool:
        """Return whether `op` depends, directly or transitively, on the producer. The producer must have been added
        last."""
        return op > producer and bool(self._rows[producer] >> (self._last - op) & 1)


@dataclass
class _Rules:
    program: KernelProgram
    descendants: _Descendants
    stored: dict[int, bool] = field(default_factory=dict[int, bool])
    shared_everywhere: dict[int, bool] = field(default_factory=dict[int, bool])
    computed_in: dict[int, int] = field(default_factory=dict[int, int])

    def decide(self, op: int) -> bool:
        """Decide the fusion of an operation, given the decisions for its readers; return whether its result is
        stored."""
        # Filling the caches from the last operation on prevents recursion over the length of the program.
        self.descendants.add(op)
        if self.program.traits[op] & Trait.FUSIBLE and self.program.readers[op]:
            self.do_not_duplicate(op)
        self.kernel(op)
        return self.is_stored(op)

    def is_stored(self, op: int) -> bool:
        """Return whether a reader needs the result in memory. A reshape is never stored: it shares its operand's
        memory."""
        is_stored = self.stored.get(op)
        if is_stored is None:
            is_stored = self.stored[op] = self._needs_memory(op)
        return is_stored

    def _needs_memory(self, op: int) -> bool:
        program = self.program
        results = program.makes[op]
        if op in program.reshapes or (results and program.constants.issuperset(results)):
            return False
        if not results or not self.may_be_inside(op):
            return not results or bool(program.readers[op])
        return not all(self.fuses(op, reader) for reader in program.readers[op])

    def may_be_inside(self, op: int) -> bool:
        """Return whether the operation can be part of a kernel of several operations."""
        return bool(self.program.traits[op] & Trait.FUSIBLE) or op in self.library

    def is_inside(self, producer: int, reader: int) -> bool:
        """Return whether the producer is computed inside the reader's kernel."""
        return not self.is_stored(producer) or (self.may_be_inside(producer) and self.fuses(producer, reader))

    def fuses(self, producer: int, reader: int) -> bool:
        if (inside := self.library.get(reader)) is not None:
            return self.library.get(producer) == inside
        return self.may_fuse(producer, reader) and not self.do_not_duplicate(producer)

    def may_fuse(self, producer: int, reader: int) -> bool:
        """Return whether the reader may absorb the producer, regardless of the producer's other readers."""
        program = self.program
        traits, taking = program.traits[producer], program.traits[reader]
        if not traits & Trait.FUSIBLE or producer in self.library or reader in self.library:
            return False
        if reader in self.in_reductions:
            return len(program.readers[producer]) == 1
        if not taking & Trait.FUSIBLE:
            return False
        if not traits & Trait.EXPENSIVE:
            return True
        return not taking & Trait.REUSES and self.is_computed_once(producer)

    @cached_property
    def library(self) -> Mapping[int, int]:
        return library_kernels(self.program)

    def is_computed_once(self, producer: int) -> bool:
        """Return whether all readers of the producer are in the same kernel."""
        return self._common_kernel(producer) >= 0

    def kernel(self, op: int) -> int:
        """Return the kernel that computes an operation: its own kernel, or the kernel into which it is fused. Return
        `_NOWHERE` or `_SEVERAL` if the operation is fused into no kernel or into several kernels."""
        kernel = self.computed_in.get(op)
        if kernel is None:
            # Set this entry before visiting the readers, since a reader may look it up.
            kernel = self.computed_in[op] = op
            if op not in self.library and not self.is_stored(op):
                kernel = self.computed_in[op] = self._common_kernel(op)
        return kernel

    def _common_kernel(self, op: int) -> int:
        """Return the kernel that computes all readers of an operation. Return `_SEVERAL` if several kernels compute its
        readers, and `_NOWHERE` if it has no readers."""
        common = _NOWHERE
        for reader in self.program.readers[op]:
            kernel = self.kernel(reader)
            if kernel in (_NOWHERE, common):
                continue
            if common != _NOWHERE or kernel == _SEVERAL:
                return _SEVERAL
            common = kernel
        return common

    @cached_property
    def in_reductions(self) -> set[int]:
        """Reductions, and the operations that are fused into them because they have no other reader."""
        members, traits = set[int](), self.program.traits
        for op in reversed(range(len(self.program))):
            readers = self.program.readers[op]
            inside = traits[op] & Trait.FUSIBLE and len(readers) == 1 and readers[0] in members
            if (inside and op not in self.library) or traits[op] & Trait.SUMS:
                members.add(op)
        return members

    def do_not_duplicate(self, producer: int) -> bool:
        """Return whether the producer must not be duplicated, because its copies would read more memory than its result
        occupies. Such a producer is fused into all of its readers or into none."""
        is_shared = self.shared_everywhere.get(producer)
        if is_shared is None:
            program = self.program
            self.shared_everywhere[producer] = False
            is_shared = self.shared_everywhere[producer] = (
                len(program.operands[producer]) > 1
                and sum([program.sizes[operand] for operand in set(program.operands[producer])])
                > program.sizes[program.makes[producer][0]]
                and len(self.large_operands(producer)) > 1
                and not all(self.fuses_on_all_paths(producer, reader) for reader in program.readers[producer])
            )
        return is_shared

    def fuses_on_all_paths(self, producer: int, reader: int) -> bool:
        """Return whether the producer is fused into the reader on every use-def path between them.

        `decide` must have been called for the producer last, because only its descendants are known.
        """
        pending, visited = [reader], {reader}
        while pending:
            current = pending.pop()
            if not self.may_fuse(producer, current):
                return False
            for other in self.program.sources[current]:
                if other == producer or other in visited or not self.descendants.depends_on(other, producer):
                    continue
                if not self.fuses(other, current):
                    return False
                visited.add(other)
                pending.append(other)
        return True

    def large_operands(self, op: int) -> Sequence[int]:
        """Return the operands whose rank is at least the rank of the result, except broadcasts and constants."""
        program = self.program
        root, ranks, constants, broadcasts = program.root, program.ranks, program.constants, program.broadcasts
        rank = ranks[program.makes[op][0]]
        return [
            value
            for operand in program.operands[op]
            if (value := root[operand]) not in constants and value not in broadcasts and ranks[value] >= rank
        ]

    def reads(self, op: int) -> tuple[int, ...]:
        """Return the stored values that the kernel of `op` reads, including the operands of operations that are fused
        into it."""
        program, stored = self.program, dict[int, None]()
        pending, visited = [op], {op}
        root, reads, constants, makers = program.root, program.reads, program.constants, program.maker
        while pending:
            current = pending.pop()
            for read in reads[current]:
                value = root[read]
                if value in constants:
                    continue
                maker = makers[value]
                if maker == NO_MAKER or not self.is_inside(maker, current):
                    stored[value] = None
                elif maker not in visited:
                    visited.add(maker)
                    pending.append(maker)
        return tuple(stored)
