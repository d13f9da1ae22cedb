"""The program order of a block: its operations, the values that they read, and the values computed from constants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...rules.buffers import is_executed
from ...rules.effects import why_impure
from ...rules.facts import Facts
from ...rules.registry import facts_of
from ...support.diagnostics import Refusal
from ...support.operations import operations_in


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
        return cls.from_operations(block, operations_in(block))

    @classmethod
    def from_operations(cls, block: Block, operations: Iterable[Operation]) -> Order:
        """Return an order with the block's operations as given. Every operation must follow the definitions of its
        operands."""
        ordered = tuple(operations)
        return cls(block, ordered, {op: index for index, op in enumerate(ordered)})

    def owner_here(self, op: Operation) -> Operation | None:
        """Return the operation of this block that is `op` or contains it in a region; None if there is none."""
        current: Operation | None = op
        while current is not None and current not in self.position:
            current = current.parent_op()
        return current

    def definition(self, value: SSAValue) -> int:
        """Return the position of the operation that defines the value, or -1 for arguments and captured values."""
        return self.position.get(value.op, -1) if isinstance(value, OpResult) else -1

    @cached_property
    def facts(self) -> tuple[Facts | None, ...]:
        """The facts about each operation."""
        return tuple(map(facts_of, self.operations))

    @cached_property
    def reads(self) -> tuple[tuple[SSAValue, ...], ...]:
        """For each operation, the values that it and its regions read, without duplicates; see `read_values`."""
        return tuple(map(_read_by, self.operations))

    @cached_property
    def producers(self) -> tuple[tuple[int, ...], ...]:
        """For each operation, the positions of the operations that define the values it reads."""
        # The keys are ids, because integers are several times as fast to look up as values.
        maker = {id(result): index for index, op in enumerate(self.operations) for result in op.results}
        return tuple([tuple([maker[id(value)] for value in read if id(value) in maker]) for read in self.reads])

    @cached_property
    def constants(self) -> frozenset[SSAValue]:
        """The values that are computed only from constants."""
        return frozenset([result for op in self.constant_operations for result in op.results])

    @cached_property
    def constant_operations(self) -> dict[Operation, None]:
        """The operations with results that are computed only from constants, in program order."""
        return dict.fromkeys(self._constant_operations(set()))

    def add_constants(self, values: set[SSAValue]) -> None:
        """Extend a set of captured constants with the values of this block that are computed only from constants."""
        operations = self._constant_operations(set(map(id, values))) if values else self.constant_operations
        values.update([result for op in operations for result in op.results])

    def _constant_operations(self, constants: set[int]) -> list[Operation]:
        """Return the operations with results that are computed only from constants. Operations that run even if all
        their operands are constants (`is_executed`) are excluded.

        `constants`: the ids of captured constants, to which the ids of the results are added. Ids are several times as
        fast to look up as values.
        """
        operations = list[Operation]()
        is_known = constants.__contains__
        for op, read in zip(self.operations, self.reads, strict=True):
            # The first operand of most operations is not a constant, so the test ends early.
            if read and not (is_known(id(read[0])) and all([is_known(id(value)) for value in read])):
                continue
            if op.results and why_impure(op) is None and not is_executed(op):
                constants.update(map(id, op.results))
                operations.append(op)
        return operations

    def readers(self, value: SSAValue) -> list[Operation]:
        """Return the block's operations that read the value, either directly or in their regions, in program order."""
        owners = {owner for use in value.uses if (owner := self.owner_here(use.operation)) is not None}
        return sorted(owners, key=self.position.__getitem__)


def read_values(op: Operation) -> list[SSAValue]:
    """Return the operands, then the values that the regions capture, without duplicates, in order of use."""
    return list(_read_by(op))


def _read_by(op: Operation) -> tuple[SSAValue, ...]:
    # The property `operands` is slower, and this runs for every operation.
    operands = tuple(op._operands)  # pyright: ignore[reportPrivateUsage]
    if op.regions:
        return tuple(_with_captured(operands, op))
    if len(operands) < 2 or len(set(map(id, operands))) == len(operands):
        return operands
    return tuple({id(value): value for value in operands}.values())


def captured_values(op: Operation) -> list[SSAValue]:
    """Return the values that the regions of an operation capture, without duplicates, in order of use."""
    return _with_captured((), op)


def _with_captured(operands: Iterable[SSAValue], op: Operation) -> list[SSAValue]:
    """Return the operands, then the values that the regions capture, without duplicates, in order of use."""
    # The keys are ids, because integers are several times as fast to look up as values.
    read = {id(value): value for value in operands}
    inside = set[int]()
    _add_inner(op, read, inside)
    return [value for number, value in read.items() if number not in inside]


def _add_inner(op: Operation, read: dict[int, SSAValue], definitions: set[int]) -> None:
    """Collect the values that the regions of an operation read and define, at every depth. Values are keyed by id."""
    for region in op.regions:
        for block in region.blocks:
            definitions.update(map(id, block.args))
            inner = block.first_op
            while inner is not None:
                definitions.update(map(id, inner.results))
                for value in inner._operands:  # pyright: ignore[reportPrivateUsage]
                    read.setdefault(id(value), value)
                if inner.regions:
                    _add_inner(inner, read, definitions)
                inner = inner._next_op  # pyright: ignore[reportPrivateUsage]


def producers(op: Operation) -> list[Operation]:
    """Return the operations that define the values that `op` reads, including its regions."""
    return [value.op for value in read_values(op) if isinstance(value, OpResult)]


def constants_only(order: Order, outside: Iterable[SSAValue] = ()) -> frozenset[SSAValue]:
    """Return the values of a block that are computed only from constants.

    `outside`: captured values that are computed only from constants.
    """
    constants = set(outside)
    if not constants:
        return order.constants
    order.add_constants(constants)
    return frozenset(constants)
