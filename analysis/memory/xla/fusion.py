"""Which results XLA:CPU stores, and which it computes inside the operations that read them.

The rules are those of XLA's instruction fusion (`xla/service/instruction_fusion.cc` and its CPU heir). A producer goes
into each of its readers that can take it. It is stored as well if a reader cannot: a matrix product reads memory. Two
things are worth knowing when bytes are counted:

- a cheap producer with one large operand goes into several readers, each computing it again, and then its *operand*
  is what lives until the last of them: not the mask of a dropout, but the random bits that it is made of;
- an expensive producer (`tanh`) with several readers is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.ir import Operation, SSAValue

from ....rules.fusion import EXPENSIVE, FUSIBLE, REDUCTIONS, reuses_elements
from ....rules.names import name_of
from ....rules.storage import DENSE_VIEWS, viewed_operand
from ...step.order import Order, read_values
from ...step.storage import rank_of, value_bytes


@dataclass(frozen=True)
class Fusion:
    """`reads`: for each operation that runs as a kernel of its own, the stored values that it reads."""

    reads: Mapping[Operation, tuple[SSAValue, ...]]

    @property
    def kernels(self) -> tuple[Operation, ...]:
        return tuple(self.reads)


def fusion(order: Order, constants: Set[SSAValue]) -> Fusion:
    """Fuse the operations of a block. `constants` are values that cost nothing and are made where they are used."""
    rules = _Rules(order, constants)
    stored = {op for op in order.operations if rules.is_stored(op)}
    return Fusion({op: rules.reads(op) for op in order.operations if op in stored})


@dataclass
class _Rules:
    order: Order
    constants: Set[SSAValue]
    shared_everywhere: dict[Operation, bool] = field(default_factory=dict[Operation, bool])

    @cached_property
    def readers(self) -> dict[Operation, tuple[Operation, ...]]:
        """Who reads the results of each operation, reshapes looked through."""
        found: dict[Operation, tuple[Operation, ...]] = {}
        for op in reversed(self.order.operations):
            direct = dict.fromkeys(reader for result in op.results for reader in self.order.readers(result))
            through = dict[Operation, None]()
            for reader in direct:
                through.update(dict.fromkeys(found[reader]) if is_reshape(reader) else {reader: None})
            found[op] = tuple(through)
        return found

    def is_stored(self, op: Operation) -> bool:
        """Whether some reader needs the result in memory. Reshapes are the memory of their operand."""
        if is_reshape(op) or (op.results and all(result in self.constants for result in op.results)):
            return False
        return not op.results or not all(self.fuses(op, reader) for reader in self.readers[op])

    def fuses(self, producer: Operation, reader: Operation) -> bool:
        return self.may_fuse(producer, reader) and not self.do_not_duplicate(producer)

    def may_fuse(self, producer: Operation, reader: Operation) -> bool:
        """What one edge says, whatever the other readers do."""
        if name_of(producer) not in FUSIBLE:
            return False
        if reader in self.in_reductions:
            return len(self.readers[producer]) == 1
        if name_of(reader) not in FUSIBLE:
            return False
        expensive = name_of(producer) in EXPENSIVE
        return not expensive or (len(self.readers[producer]) == 1 and not reuses_elements(reader))

    @cached_property
    def in_reductions(self) -> set[Operation]:
        """Reductions and what is computed inside of them: that which nobody else reads."""
        found = set[Operation]()
        for op in reversed(self.order.operations):
            inside = name_of(op) in FUSIBLE and len(self.readers[op]) == 1 and self.readers[op][0] in found
            if inside or name_of(op) in REDUCTIONS:
                found.add(op)
        return found

    def do_not_duplicate(self, producer: Operation) -> bool:
        """Several copies would read more memory than the one result: fuse into every reader, or into none."""
        if producer not in self.shared_everywhere:
            self.shared_everywhere[producer] = False
            self.shared_everywhere[producer] = (
                len(self.large_operands(producer)) > 1
                and sum(map(value_bytes, dict.fromkeys(producer.operands))) > value_bytes(producer.results[0])
                and not all(self.fuses_on_all_paths(producer, reader) for reader in self.readers[producer])
            )
        return self.shared_everywhere[producer]

    def fuses_on_all_paths(self, producer: Operation, reader: Operation) -> bool:
        """Also where another operand of the reader comes from the producer: that way must be fused too."""
        if not self.may_fuse(producer, reader):
            return False
        for other in self.sources(reader):
            if other is producer or not self.comes_from(other, producer):
                continue
            if not self.fuses(other, reader) or not self.fuses_on_all_paths(producer, other):
                return False
        return True

    def comes_from(self, op: Operation, producer: Operation) -> bool:
        return bool(self.ancestors[op] >> self.order.position[producer] & 1)

    @cached_property
    def ancestors(self) -> dict[Operation, int]:
        """The positions of all that an operation needs, as the bits of a number."""
        found: dict[Operation, int] = {}
        for op in self.order.operations:
            bits = 0
            for source in self.sources(op):
                bits |= found[source] | 1 << self.order.position[source]
            found[op] = bits
        return found

    def sources(self, op: Operation) -> list[Operation]:
        values = map(seen_through_reshapes, read_values(op))
        return [value.owner for value in values if self.is_made_here(value)]  # pyright: ignore[reportReturnType]

    def is_made_here(self, value: SSAValue) -> bool:
        return value not in self.constants and self.order.definition(value) >= 0

    def large_operands(self, op: Operation) -> Sequence[SSAValue]:
        """Operands that are as large as the result in every dimension; a broadcast or a constant is not."""
        rank = rank_of(op.results[0])
        values = [seen_through_reshapes(value) for value in op.operands]
        return [
            value
            for value in values
            if value not in self.constants and not is_broadcast(value) and rank_of(value) >= rank
        ]

    def reads(self, op: Operation) -> tuple[SSAValue, ...]:
        """The stored values that the kernel of `op` reads, through everything that is fused into it."""
        found = dict[SSAValue, None]()
        waiting, seen = [op], {op}
        while waiting:
            current = waiting.pop()
            for value in map(seen_through_reshapes, read_values(current)):
                owner = value.owner
                if value in self.constants:
                    continue
                if isinstance(owner, Operation) and self.is_made_here(value) and self.fuses(owner, current):
                    if owner not in seen:
                        seen.add(owner)
                        waiting.append(owner)
                    continue
                found[value] = None
        return tuple(found)


def is_reshape(op: Operation) -> bool:
    return name_of(op) in DENSE_VIEWS


def is_broadcast(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and name_of(value.owner) == "stablehlo.broadcast_in_dim"


def seen_through_reshapes(value: SSAValue) -> SSAValue:
    """The value whose memory a chain of reshapes is."""
    while isinstance(value.owner, Operation) and is_reshape(value.owner):
        viewed = viewed_operand(value.owner)
        assert viewed is not None, "a reshape is a view of an operand"
        value = viewed
    return value
