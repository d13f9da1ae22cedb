"""Which results XLA:CPU stores, and which it computes inside the operations that read them.

The rules are those of XLA's instruction fusion (`xla/service/instruction_fusion.cc` and its CPU heir). A producer goes
into each of its readers that can take it. It is stored as well if a reader cannot: a matrix product reads memory. Two
things are worth knowing when bytes are counted:

- a cheap producer with one large operand goes into several readers, each computing it again, and then its *operand*
  is what lives until the last of them: not the mask of a dropout, but the random bits that it is made of;
- an expensive producer (`tanh`) with several readers is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ....rules.fusion import EXPENSIVE, FUSIBLE, REDUCTIONS, reuses_elements
from .program import Program


@dataclass(frozen=True)
class Fusion:
    """`reads`: for each operation that runs as a kernel of its own, the stored values that it reads."""

    program: Program
    reads: Mapping[int, tuple[int, ...]]

    @property
    def kernels(self) -> tuple[int, ...]:
        return tuple(self.reads)


def fusion(program: Program) -> Fusion:
    """Fuse the operations of a block."""
    rules = _Rules(program)
    stored = [op for op in range(len(program)) if rules.is_stored(op)]
    return Fusion(program, {op: rules.reads(op) for op in stored})


@dataclass
class _Rules:
    program: Program
    shared_everywhere: dict[int, bool] = field(default_factory=dict[int, bool])

    def is_stored(self, op: int) -> bool:
        """Whether some reader needs the result in memory. Reshapes are the memory of their operand."""
        program = self.program
        results = program.makes[op]
        if op in program.reshapes or (results and program.constants.issuperset(results)):
            return False
        return not results or not all(self.fuses(op, reader) for reader in program.readers[op])

    def fuses(self, producer: int, reader: int) -> bool:
        return self.may_fuse(producer, reader) and not self.do_not_duplicate(producer)

    def may_fuse(self, producer: int, reader: int) -> bool:
        """What one edge says, whatever the other readers do."""
        names, readers = self.program.names, self.program.readers[producer]
        if names[producer] not in FUSIBLE:
            return False
        if reader in self.in_reductions:
            return len(readers) == 1
        if names[reader] not in FUSIBLE:
            return False
        return names[producer] not in EXPENSIVE or (len(readers) == 1 and not self.reuses_elements(reader))

    def reuses_elements(self, op: int) -> bool:
        program = self.program
        return reuses_elements(
            program.names[op], program.sizes[program.operands[op][0]], program.sizes[program.makes[op][0]]
        )

    @cached_property
    def in_reductions(self) -> set[int]:
        """Reductions and what is computed inside of them: that which nobody else reads."""
        found, names = set[int](), self.program.names
        for op in reversed(range(len(self.program))):
            readers = self.program.readers[op]
            inside = names[op] in FUSIBLE and len(readers) == 1 and readers[0] in found
            if inside or names[op] in REDUCTIONS:
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
        if not self.may_fuse(producer, reader):
            return False
        for other in self.program.sources[reader]:
            if other == producer or not self.comes_from(other, producer):
                continue
            if not self.fuses(other, reader) or not self.fuses_on_all_paths(producer, other):
                return False
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
                if program.is_made_here(value) and self.fuses(maker, current):
                    if maker not in seen:
                        seen.add(maker)
                        waiting.append(maker)
                    continue
                found[value] = None
        return tuple(found)
