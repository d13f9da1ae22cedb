"""Which results XLA:CPU stores, and which it computes inside the operations that read them.

The rules are those of XLA's instruction fusion (`xla/service/instruction_fusion.cc` and its CPU heir). A producer goes
into each of its readers that can take it. It is stored as well if a reader cannot: a matrix product reads memory. Two
things are worth knowing when bytes are counted:

- a cheap producer with one large operand goes into several readers, each computing it again, and then its *operand*
  is what lives until the last of them: not the mask of a dropout, but the random bits that it is made of;
- an expensive producer (`tanh`) whose readers are computed in several kernels is stored.

What the library's kernels take (`library_kernels.py`) is taken before: they are fused with nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ....planning.graph import OUTSIDE
from .library_kernels import library_kernels
from .program import Program
from .traits import Trait


@dataclass(frozen=True)
class Fusion:
    """`reads`: for each operation that runs as a kernel of its own, the stored values that it reads. `library`: the
    operations inside of kernels of the library."""

    program: Program
    reads: Mapping[int, tuple[int, ...]]
    library: frozenset[int]

    @property
    def kernels(self) -> tuple[int, ...]:
        return tuple(self.reads)


def fusion(program: Program) -> Fusion:
    """Fuse the operations of a block."""
    rules = _Rules(program)
    # From the end: what an operation is computed in depends on its readers.
    stored = [op for op in reversed(range(len(program))) if rules.place(op)]
    stored.reverse()
    return Fusion(program, {op: rules.reads(op) for op in stored}, frozenset(rules.library))


@dataclass
class _Rules:
    program: Program
    stored: dict[int, bool] = field(default_factory=dict[int, bool])
    shared_everywhere: dict[int, bool] = field(default_factory=dict[int, bool])
    computed_in: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])

    def place(self, op: int) -> bool:
        """Find out all about the operation, whose readers are placed; whether it is stored."""
        # It is asked for sooner or later; asked now, nothing recurses over the length of the program.
        if self.program.traits[op] & Trait.FUSIBLE and self.program.readers[op]:
            self.do_not_duplicate(op)
        self.kernels(op)
        return self.is_stored(op)

    def is_stored(self, op: int) -> bool:
        """Whether some reader needs the result in memory. Reshapes are the memory of their operand."""
        found = self.stored.get(op)
        if found is None:
            found = self.stored[op] = self._needs_memory(op)
        return found

    def _needs_memory(self, op: int) -> bool:
        program = self.program
        results = program.makes[op]
        if op in program.reshapes or (results and program.constants.issuperset(results)):
            return False
        if not results or not self.may_be_inside(op):
            return not results or bool(program.readers[op])
        return not all(self.fuses(op, reader) for reader in program.readers[op])

    def may_be_inside(self, op: int) -> bool:
        """Whether it can be computed inside of some kernel."""
        return bool(self.program.traits[op] & Trait.FUSIBLE) or op in self.library

    def is_inside(self, producer: int, reader: int) -> bool:
        """As `fuses`, once it is known what is stored: what is not is computed in every reader."""
        return not self.is_stored(producer) or (self.may_be_inside(producer) and self.fuses(producer, reader))

    def fuses(self, producer: int, reader: int) -> bool:
        if (inside := self.library.get(reader)) is not None:
            return self.library.get(producer) == inside
        return self.may_fuse(producer, reader) and not self.do_not_duplicate(producer)

    def may_fuse(self, producer: int, reader: int) -> bool:
        """What one edge says, whatever the other readers do."""
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
        """Whether all that read it are computed inside of one kernel, and there once."""
        kernels = set[int]()
        for reader in self.program.readers[producer]:
            kernels |= self.kernels(reader)
        return len(kernels) == 1

    def kernels(self, op: int) -> frozenset[int]:
        """Those that compute an operation: itself, or all that it is fused into."""
        if op not in self.computed_in:
            self.computed_in[op] = frozenset([op])
            if op not in self.library and not self.is_stored(op):
                inside = [self.kernels(reader) for reader in self.program.readers[op]]
                self.computed_in[op] = frozenset().union(*inside)
        return self.computed_in[op]

    @cached_property
    def in_reductions(self) -> set[int]:
        """Reductions and what is computed inside of them: that which nobody else reads."""
        found, traits = set[int](), self.program.traits
        for op in reversed(range(len(self.program))):
            readers = self.program.readers[op]
            inside = traits[op] & Trait.FUSIBLE and len(readers) == 1 and readers[0] in found
            if (inside and op not in self.library) or traits[op] & Trait.SUMS:
                found.add(op)
        return found

    def do_not_duplicate(self, producer: int) -> bool:
        """Several copies would read more memory than the one result: fuse into every reader, or into none."""
        if producer not in self.shared_everywhere:
            program = self.program
            self.shared_everywhere[producer] = False
            self.shared_everywhere[producer] = (
                len(self.large_operands(producer)) > 1
                and sum(program.sizes[one] for one in set(program.operands[producer]))
                > program.sizes[program.makes[producer][0]]
                and not all(self.fuses_on_all_paths(producer, reader) for reader in program.readers[producer])
            )
        return self.shared_everywhere[producer]

    def fuses_on_all_paths(self, producer: int, reader: int) -> bool:
        """Also where another operand of the reader comes from the producer: that way must be fused too."""
        pending, seen = [reader], {reader}
        while pending:
            current = pending.pop()
            if not self.may_fuse(producer, current):
                return False
            for other in self.program.sources[current]:
                if other == producer or other in seen or not self.comes_from(other, producer):
                    continue
                if not self.fuses(other, current):
                    return False
                seen.add(other)
                pending.append(other)
        return True

    def comes_from(self, op: int, producer: int) -> bool:
        return bool(self.ancestors[op] >> producer & 1)

    @cached_property
    def ancestors(self) -> Sequence[int]:
        """All that an operation needs, as the bits of a number."""
        found = list[int]()
        for sources in self.program.sources:
            bits = 0
            for source in sources:
                bits |= found[source] | 1 << source
            found.append(bits)
        return found

    def large_operands(self, op: int) -> Sequence[int]:
        """Operands that are as large as the result in every dimension; a broadcast or a constant is not."""
        program = self.program
        rank = program.ranks[program.makes[op][0]]
        return [
            value
            for value in (program.root[operand] for operand in program.operands[op])
            if value not in program.constants and value not in program.broadcasts and program.ranks[value] >= rank
        ]

    def reads(self, op: int) -> tuple[int, ...]:
        """The stored values that the kernel of `op` reads, through everything that is fused into it."""
        program, found = self.program, dict[int, None]()
        waiting, seen = [op], {op}
        while waiting:
            current = waiting.pop()
            for value in (program.root[one] for one in program.reads[current]):
                if value in program.constants:
                    continue
                maker = program.maker[value]
                if maker != OUTSIDE and self.is_inside(maker, current):
                    if maker not in seen:
                        seen.add(maker)
                        waiting.append(maker)
                    continue
                found[value] = None
        return tuple(found)
