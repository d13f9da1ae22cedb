"""Program order as numbers. xDSL's `is_before_in_block` walks the block each time; this walks it once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...rules.effects import why_impure


@dataclass(frozen=True)
class Order:
    """The operations of one block and their positions; valid until the block is changed."""

    block: Block
    operations: tuple[Operation, ...]
    position: dict[Operation, int]

    @classmethod
    def of(cls, block: Block) -> Order:
        """Program order."""
        return cls.from_operations(block, block.ops)

    @classmethod
    def from_operations(cls, block: Block, operations: Iterable[Operation]) -> Order:
        """Another order of the block's operations, in which each still comes after what it reads."""
        listed = tuple(operations)
        return cls(block, listed, {op: index for index, op in enumerate(listed)})

    def owner_here(self, op: Operation) -> Operation | None:
        """The operation of this block that is `op` or holds it in a region."""
        current: Operation | None = op
        while current is not None and current not in self.position:
            current = current.parent_op()
        return current

    def definition(self, value: SSAValue) -> int:
        """Position of the operation that makes the value; -1 for arguments and values from outside the block."""
        return self.position.get(value.op, -1) if isinstance(value, OpResult) else -1

    @cached_property
    def reads(self) -> tuple[tuple[SSAValue, ...], ...]:
        """For each operation what it and its regions read, each value once; see `read_values`."""
        return tuple([tuple(read_values(op)) for op in self.operations])

    @cached_property
    def producers(self) -> tuple[tuple[int, ...], ...]:
        """For each operation the positions of those that make what it reads."""
        # By identity, which values are hashed by anyway: ints are looked up several times as fast.
        maker = {id(result): index for index, op in enumerate(self.operations) for result in op.results}
        return tuple([tuple([maker[id(value)] for value in read if id(value) in maker]) for read in self.reads])

    @cached_property
    def constants(self) -> frozenset[SSAValue]:
        """The values that come from constants alone."""
        found = set[SSAValue]()
        self.add_constants(found)
        return frozenset(found)

    def add_constants(self, found: set[SSAValue]) -> None:
        """Add them to those from outside of the block that do so."""
        for op, read in zip(self.operations, self.reads, strict=True):
            # Nearly every operation reads something else first, and is done with then.
            is_constant = all(map(found.__contains__, read))
            if is_constant and why_impure(op) is None:
                found.update(op.results)

    def readers(self, value: SSAValue) -> list[Operation]:
        """Operations of this block that read the value, themselves or in their regions, in program order."""
        found = {owner for use in value.uses if (owner := self.owner_here(use.operation)) is not None}
        return sorted(found, key=self.position.__getitem__)


def read_values(op: Operation) -> list[SSAValue]:
    """The operands, and what its regions read from outside of it, each once, in order of reading."""
    operands = list(op.operands)
    if not op.regions:
        is_once = len(operands) < 2 or (len(operands) == 2 and operands[0] is not operands[1])
        return operands if is_once else list(dict.fromkeys(operands))
    values, inside = dict.fromkeys(operands), set[SSAValue]()
    _add_inner(op, values, inside)
    return [value for value in values if value not in inside]


def captured_values(op: Operation) -> list[SSAValue]:
    """What the regions of an operation read from outside of it, each once, in order of reading."""
    values, inside = dict[SSAValue, None](), set[SSAValue]()
    _add_inner(op, values, inside)
    return [value for value in values if value not in inside]


def _add_inner(op: Operation, read: dict[SSAValue, None], made: set[SSAValue]) -> None:
    """What the regions of an operation read and make, at every depth."""
    for region in op.regions:
        for block in region.blocks:
            made.update(block.args)
            for inner in block.ops:
                made.update(inner.results)
                read.update(dict.fromkeys(inner.operands))
                if inner.regions:
                    _add_inner(inner, read, made)


def producers(op: Operation) -> list[Operation]:
    """The operations that make what `op` reads."""
    return [value.op for value in read_values(op) if isinstance(value, OpResult)]
