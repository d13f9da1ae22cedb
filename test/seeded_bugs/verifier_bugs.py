"""Bugs that preserve the results but lose the memory saving. The verifier of the passes must reject each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from recompute.dialects.names import Names
from recompute.dialects.recompute import DependOp, TokenOp
from recompute.dialects.stablehlo.control import OptimizationBarrierOp

from .bug import Bug, Edit, main_block


def copies(module: ModuleOp) -> list[Operation]:
    return [op for op in main_block(module).ops if Names.COPY in op.attributes]


def delays(module: ModuleOp) -> list[Operation]:
    """Return the depends and barriers that delay copies, without those of recompute-stagger, which delay the forward
    pass."""
    ops = (op for op in main_block(module).ops if isinstance(op, DependOp | OptimizationBarrierOp))
    return [op for op in ops if any(Names.COPY in use.operation.attributes for r in op.results for use in r.uses)]


def reads(op: Operation, value: SSAValue, index: int) -> Edit:
    def edit() -> None:
        op.operands[index] = value

    return edit


def gates(barrier: Operation) -> Iterator[int]:
    """Yield the operands of a barrier that are gradient values, whose results no copy reads."""
    for index, result in enumerate(barrier.results):
        if not any(Names.COPY in use.operation.attributes for use in result.uses):
            yield index


def token_removed(module: ModuleOp) -> Iterable[Edit]:
    """Let the readers of delayed values read the original values."""
    for delay in delays(module):

        def edit(delay: Operation = delay) -> None:
            for value, result in zip(delay.operands, delay.results, strict=False):
                result.replace_all_uses_with(value)

        yield edit


def original_read(module: ModuleOp) -> Iterable[Edit]:
    """Let a gradient operation read the original instead of its copy."""
    originals = {
        op.attributes[Names.ID]: op
        for op in main_block(module).ops
        if Names.ID in op.attributes and Names.COPY not in op.attributes
    }
    for copy in copies(module):
        original = originals.get(copy.attributes[Names.ID])
        for index, result in enumerate(copy.results if original is not None else ()):
            for use in result.uses:
                if Names.COPY not in use.operation.attributes and original is not None:
                    yield reads(use.operation, original.results[index], use.index)


def copy_reads_past_its_gate(module: ModuleOp) -> Iterable[Edit]:
    """Let a copy read an input directly instead of through its token."""
    for copy in copies(module):
        for index, operand in enumerate(copy.operands):
            delay = operand.owner
            if isinstance(delay, DependOp | OptimizationBarrierOp):
                yield reads(copy, delay.operands[list(delay.results).index(operand)], index)  # pyright: ignore


def copy_before_its_gate(module: ModuleOp) -> Iterable[Edit]:
    """Move a copy to the beginning of the step."""
    block = main_block(module)
    for copy in copies(module):

        def edit(copy: Operation = copy) -> None:
            copy.detach()
            assert block.first_op is not None, "a step has operations"
            Rewriter.insert_op(copy, InsertPoint.before(block.first_op))

        if copy.operands:
            yield edit


def gate_made_from_constants(module: ModuleOp) -> Iterable[Edit]:
    """Let a token wait for a constant, which is available from the start."""
    block = main_block(module)
    constants = {op.results[0].type: op.results[0] for op in block.ops if op.name == "stablehlo.constant"}
    if not constants:
        return
    constant = next(iter(constants.values()))
    for op in block.ops:
        if isinstance(op, TokenOp):

            def edit(op: TokenOp = op) -> None:
                op.operands = [constant]

            yield edit


def gate_left_unread(module: ModuleOp) -> Iterable[Edit]:
    """Let later readers of the gradient bypass the barrier, so that XLA drops the unused operand."""
    for barrier in delays(module):
        if isinstance(barrier, OptimizationBarrierOp):

            def edit(barrier: Operation = barrier) -> None:
                for index in list(gates(barrier)):
                    barrier.results[index].replace_all_uses_with(barrier.operands[index])

            yield edit


def token_left_unread(module: ModuleOp) -> Iterable[Edit]:
    """Add a second token that nothing waits for."""
    for op in main_block(module).ops:
        if isinstance(op, TokenOp):
            yield lambda op=op: Rewriter.insert_op(op.clone(), InsertPoint.after(op))


def copied_twice(module: ModuleOp) -> Iterable[Edit]:
    """Duplicate a copy."""
    for copy in copies(module):
        yield lambda copy=copy: Rewriter.insert_op(copy.clone(), InsertPoint.after(copy))


def attribute_misspelt(module: ModuleOp) -> Iterable[Edit]:
    for copy in copies(module):

        def edit(copy: Operation = copy) -> None:
            copy.attributes["recompute.duplicate"] = UnitAttr()

        yield edit


def copy_number_lost(module: ModuleOp) -> Iterable[Edit]:
    """Remove the number of a copy, so that the next CSE may merge it with another operation."""
    for copy in copies(module):

        def edit(copy: Operation = copy) -> None:
            del copy.attributes[Names.COPY]

        yield edit


BUGS: tuple[Bug, ...] = (
    Bug("token removed", token_removed),
    Bug("original read instead of its copy", original_read),
    Bug("copy reads past its gate", copy_reads_past_its_gate),
    Bug("copy before its gate", copy_before_its_gate),
    Bug("gate made from constants", gate_made_from_constants),
    Bug("gate left unread behind the barrier", gate_left_unread),
    Bug("token without uses", token_left_unread),
    Bug("copied twice", copied_twice),
    Bug("attribute misspelt", attribute_misspelt),
    Bug("copy number lost", copy_number_lost),
)
