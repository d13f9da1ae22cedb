"""The program order of a block: its operations, the values that each reads, and the values computed from constants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...rules.buffers import is_allocated
from ...rules.effects import why_impure
from ...support.diagnostics import Refusal


def functions_of(module: ModuleOp) -> list[FuncOp]:
    """Return the public functions that have a body, in program order."""
    return [
        op
        for op in module.ops
        if isinstance(op, FuncOp)
        and op.body.blocks
        and (op.sym_visibility is None or op.sym_visibility.data != "private")
    ]


def single_block(function: FuncOp) -> Block:
    """Return the function's only block.

    Raises:
        Refusal: The function has several blocks, whose control flow has no program order.
    """
    blocks = list(function.body.blocks)
    if len(blocks) != 1:
        raise Refusal(
            function,
            f"function '{function.sym_name.data}' has {len(blocks)} blocks; recomputation needs one block: "
            "express the control flow with stablehlo.while, stablehlo.case or scf",
        )
    return blocks[0]


@dataclass(frozen=True)
class Order:
    """The operations of one block and their positions; valid until the block is changed."""

    block: Block
    operations: tuple[Operation, ...]
    position: dict[Operation, int]

    @classmethod
    def of(cls, block: Block) -> Order:
        """Return the program order of a block."""
        return cls.from_operations(block, block.ops)

    @classmethod
    def from_operations(cls, block: Block, operations: Iterable[Operation]) -> Order:
        """Return another order of the block's operations, in which every operation must follow the definitions that it
        reads."""
        ordered = tuple(operations)
        return cls(block, ordered, {op: index for index, op in enumerate(ordered)})

    def owner_here(self, op: Operation) -> Operation | None:
        """Return the operation of this block that is `op` or contains it in a region; None if there is none."""
        current: Operation | None = op
        while current is not None and current not in self.position:
            current = current.parent_op()
        return current

    def definition(self, value: SSAValue) -> int:
        """Return the position of the operation that defines the value; -1 for arguments and values from outside the
        block."""
        return self.position.get(value.op, -1) if isinstance(value, OpResult) else -1

    @cached_property
    def reads(self) -> tuple[tuple[SSAValue, ...], ...]:
        """For each operation the values that it and its regions read, without duplicates; see `read_values`."""
        return tuple([tuple(read_values(op)) for op in self.operations])

    @cached_property
    def producers(self) -> tuple[tuple[int, ...], ...]:
        """For each operation the positions of the operations that define the values it reads."""
        # Keyed by identity, as the hash of a value is: integers are several times as fast to look up.
        maker = {id(result): index for index, op in enumerate(self.operations) for result in op.results}
        return tuple([tuple([maker[id(value)] for value in read if id(value) in maker]) for read in self.reads])

    @cached_property
    def constants(self) -> frozenset[SSAValue]:
        """The values that are computed from constants alone."""
        values = set[SSAValue]()
        self.add_constants(values)
        return frozenset(values)

    def add_constants(self, values: set[SSAValue]) -> None:
        """Extend a set of captured constants by the values of this block that are computed from constants alone."""
        for op, read in zip(self.operations, self.reads, strict=True):
            # The first operand of most operations is not a constant, so the test ends early.
            is_constant = all(map(values.__contains__, read))
            if is_constant and why_impure(op) is None and not is_allocated(op):
                values.update(op.results)

    def readers(self, value: SSAValue) -> list[Operation]:
        """Return the operations of this block that read the value, themselves or in their regions, in program order."""
        owners = {owner for use in value.uses if (owner := self.owner_here(use.operation)) is not None}
        return sorted(owners, key=self.position.__getitem__)


def read_values(op: Operation) -> list[SSAValue]:
    """Return the operands, then the values that the regions capture, without duplicates, in order of use."""
    operands = list(op.operands)
    if not op.regions:
        is_once = len(operands) < 2 or (len(operands) == 2 and operands[0] is not operands[1])
        return operands if is_once else list(dict.fromkeys(operands))
    values, inside = dict.fromkeys(operands), set[SSAValue]()
    _add_inner(op, values, inside)
    return [value for value in values if value not in inside]


def captured_values(op: Operation) -> list[SSAValue]:
    """Return the values that the regions of an operation capture, without duplicates, in order of use."""
    values, inside = dict[SSAValue, None](), set[SSAValue]()
    _add_inner(op, values, inside)
    return [value for value in values if value not in inside]


def _add_inner(op: Operation, read: dict[SSAValue, None], made: set[SSAValue]) -> None:
    """Collect the values that the regions of an operation read and define, at every depth."""
    for region in op.regions:
        for block in region.blocks:
            made.update(block.args)
            for inner in block.ops:
                made.update(inner.results)
                read.update(dict.fromkeys(inner.operands))
                if inner.regions:
                    _add_inner(inner, read, made)


def producers(op: Operation) -> list[Operation]:
    """Return the operations that define the values that `op` reads."""
    return [value.op for value in read_values(op) if isinstance(value, OpResult)]


def constants_only(order: Order, outside: Iterable[SSAValue] = ()) -> frozenset[SSAValue]:
    """Return the values of a block that are computed from constants alone.

    `outside`: captured values that are computed from constants alone.
    """
    constants = set(outside)
    if not constants:
        return order.constants
    order.add_constants(constants)
    return frozenset(constants)
