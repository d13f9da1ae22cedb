"""Compiler of blocks to programs of numpy kernels (`block_programs.py`).

An operation that cannot be executed is refused when its block is compiled, before anything runs. The operations alone
determine which results are views, and therefore which value owns a buffer (`rules/buffers.py`):

    transpose, broadcast_in_dim       a view of the operand
    reshape                           a view if the operand is row-major, otherwise a copy
    optimization_barrier, depend      the operands themselves
    moves to and from the host        new buffers, which `meter.py` distinguishes
    constants of equal elements       a view of one element
    loops, branches                   their carry, see `control_flow.py`
    segment, gradient                 the values of their operations, as if these were inlined
    everything else                   new buffers
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import FunctionType, SymbolRefAttr, TupleType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.linalg.ops import IndexOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import SymbolTable

from ..dialects.stablehlo.external import RngOp
from ..dialects.structured import GroupOp
from ..rules.buffers import DENSE_VIEWS, FORWARDS, STRIDED_VIEWS, viewed_operand
from ..rules.effects import works_on_memory
from ..support.diagnostics import Refusal
from ..support.operations import name_of
from .block_programs import BlockProgram, Observer, ProgramStep, captures_of
from .checked_kernels import add_result_checks
from .combiners import combiner
from .control_flow import CONTROL_FLOW
from .identity_kernels import ORDERING, identity_kernel
from .kernels.arrays import Combine, Kernel, shape_at
from .kernels.collectives_run import ON_DEVICES, REDUCING_ON_DEVICES, SimulatedDevice
from .kernels.movement import is_view
from .kernels.properties import symbol
from .kernels.random_bits import rng
from .kernels.structured import structured_kernel
from .kernels.table import KERNELS, STRUCTURED, WITH_COMBINER, WITH_TWO_COMBINERS
from .user_kernels import registered_kernel

TERMINATORS = frozenset(
    """
    func.return linalg.yield recompute.yield scf.condition scf.yield sdy.return stablehlo.return tensor.yield
    """.split()
)


class BlockCompiler:
    """A compiler of blocks to programs. Keeps the layout of values and the programs of called functions while it
    compiles.

    Args:
        observer: Receives the values of each run.
        device: The simulated device that runs the programs, or None for a single process.
    """

    def __init__(self, observer: Observer | None = None, device: SimulatedDevice | None = None):
        self.observer = observer
        self.device = device
        self.strided = set[SSAValue]()
        self.views = set[SSAValue]()
        self.functions = dict[str, BlockProgram]()
        # The hidden state of `stablehlo.rng`: the same numbers in each execution, drawn in the order of the operations.
        self.generator = np.random.default_rng(0)

    def function(self, function: FuncOp) -> BlockProgram:
        """Compile a function and the functions that it calls. Raises `Refusal` for an operation that cannot be
        executed.
        """
        if len(function.body.blocks) != 1:
            name, count = function.sym_name.data, len(function.body.blocks)
            raise Refusal(function, f"function '{name}' has {count} blocks; only functions of one block are executed")
        return self.block(function.body.block)

    def block(self, block: Block, outer: Sequence[SSAValue] = ()) -> BlockProgram:
        """Compile a block. Raises `Refusal` for an operation that cannot be executed.

        `outer`: the captures of the block, which its program takes after the block's arguments.
        """
        end = block.last_op
        if end is None or name_of(end) not in TERMINATORS:
            raise Refusal(end or _around(block), "the block does not end with a return, and cannot be executed")
        captures = set(outer)
        operations = [op for op in block.ops if op is not end and not (op.results and captures.issuperset(op.results))]
        reads = [(*op.operands, *captures_of(op)) for op in operations]
        places: dict[SSAValue, int] = {}
        for value in (*block.args, *outer, *(result for op in operations for result in op.results)):
            places[value] = len(places)
        dead = _dead_after(operations, reads, end)
        steps = [
            ProgramStep(
                op=op,
                kernel=self.kernel(op),
                operands=tuple(places[value] for value in read),
                results=_consecutive([places[result] for result in op.results]),
                dead=tuple(places[value] for value in last_reads),
            )
            for op, read, last_reads in zip(operations, reads, dead, strict=True)
        ]
        outputs = tuple(places[value] for value in end.operands)
        return BlockProgram(tuple(steps), end, outputs, len(places), self.observer)

    def kernel(self, op: Operation) -> Kernel:
        """Return the kernel of an operation; it takes the operands, then the captures of the regions.

        Raises:
            Refusal: The operation cannot be executed.
        """
        try:
            kernel = self._kernel(op)
        except ValueError as error:
            raise Refusal(op, f"{name_of(op)} cannot be executed: {error}") from error
        if kernel is None:
            raise Refusal(op, f"{name_of(op)} cannot be executed: the interpreter does not know this operation")
        return self._following_layout(op, kernel)

    def _kernel(self, op: Operation) -> Kernel | None:
        """Return the kernel of an operation, without its layout; None if there is none.

        Kernels of users come first, then operations that run blocks or functions, then the tables of kernels.

        Raises:
            ValueError: The operation cannot be executed, with the reason.
        """
        if works_on_memory(op):
            raise ValueError("it operates on a memref; the interpreter executes only operations on values")
        for value in (*op.operands, *op.results):
            shape_at(value)
        name = name_of(op)
        if (make := registered_kernel(name)) is not None:
            return add_result_checks(op, make)
        if name in CONTROL_FLOW:
            if any(isinstance(value.type, TupleType) for value in (*op.operands, *op.results)):
                raise ValueError("it carries a tuple")
            return CONTROL_FLOW[name](self, op)
        if isinstance(op, GroupOp):
            return self._group(op)
        if isinstance(op, CallOp):
            return self._call(op, op.callee)
        if name == "stablehlo.composite":
            return self._composite(op)
        if isinstance(op, RngOp):
            return rng(op, self.generator)
        return self._kernel_from_tables(op, name)

    def _kernel_from_tables(self, op: Operation, name: str) -> Kernel | None:
        """Return the kernel that the tables have for an operation; on a device, its collectives come first."""
        if self.device is not None and name in ON_DEVICES:
            return ON_DEVICES[name](op, self.device)
        if self.device is not None and name in REDUCING_ON_DEVICES:
            return REDUCING_ON_DEVICES[name](op, self.device, self._combiner(op, op.regions[0].block))
        if name in STRUCTURED:
            return self._structured_kernel(op)
        if name in WITH_COMBINER:
            return WITH_COMBINER[name](op, self._combiner(op, op.regions[0].block))
        if name in WITH_TWO_COMBINERS:
            return WITH_TWO_COMBINERS[name](op, *(self._combiner(op, region.block) for region in op.regions))
        if name in KERNELS:
            return KERNELS[name](op)
        return identity_kernel(op)

    def _group(self, op: GroupOp) -> Kernel:
        run = self.block(op.body.block, captures_of(op)).run
        for result, value in zip(op.results, op.terminator.operands, strict=True):
            if value in self.strided:
                self.strided.add(result)
            if value in self.views or value.owner.parent_op() is not op:
                self.views.add(result)
        return run

    def _composite(self, op: Operation) -> Kernel:
        name = symbol(op, "decomposition")
        types = FunctionType.from_lists(
            [operand.type for operand in op.operands], [result.type for result in op.results]
        )
        if (callee_type := _callee(op, name).function_type) != types:
            raise ValueError(f"its type is {types}, but its decomposition has type {callee_type}")
        return self._call(op, name)

    def _call(self, op: Operation, callee: SymbolRefAttr) -> Kernel:
        name = callee.string_value()
        if name not in self.functions:
            self.functions[name] = self.function(_callee(op, callee))
        return self.functions[name].run

    def _combiner(self, op: Operation, block: Block, numbers: Sequence[SSAValue] = ()) -> Combine:
        # Operations on scalars have no storages that the observer counts.
        return combiner(BlockCompiler().block(block, (*numbers, *captures_of(op))), block, len(numbers))

    def _structured_kernel(self, op: Operation) -> Kernel:
        """Make the kernel of a structured operation. In addition to its arguments, the body takes the loop indices that
        `linalg.index` reads.
        """
        block = op.regions[0].block
        index_ops = [inner for inner in block.ops if isinstance(inner, IndexOp)]
        combine = self._combiner(op, block, [inner.result for inner in index_ops])
        return structured_kernel(op, combine, [inner.dim.value.data for inner in index_ops])

    def _following_layout(self, op: Operation, kernel: Kernel) -> Kernel:
        """Record which results are views; a reshape of an operand that is not row-major becomes a copy."""
        name = name_of(op)
        if name in FORWARDS:
            pairs = list(zip(op.results, op.operands, strict=False))
            self.views.update(op.results)
            self.strided.update(result for result, operand in pairs if operand in self.strided)
        elif name in STRIDED_VIEWS:
            self.views.update(op.results)
            self.strided.update(op.results)
        elif name in DENSE_VIEWS and viewed_operand(op) in self.strided:
            return _on_copy(op.operands.index(viewed_operand(op)), kernel)
        elif name in DENSE_VIEWS or is_view(op):
            self.views.update(op.results)
        return kernel


def _on_copy(index: int, kernel: Kernel) -> Kernel:
    """Wrap a kernel so that it receives a row-major copy of the operand at `index`."""
    return lambda *operands: kernel(*operands[:index], operands[index].copy(), *operands[index + 1 :])


def is_known(kind: type[Operation]) -> bool:
    """Return whether operations of this class can be executed."""
    return (
        kind in ORDERING
        or kind.name in CONTROL_FLOW
        or issubclass(kind, GroupOp)
        or kind is RngOp
        or kind.name in KERNELS
        or kind.name in STRUCTURED
        or kind.name in WITH_COMBINER
        or kind.name in WITH_TWO_COMBINERS
    )


def _callee(op: Operation, name: SymbolRefAttr) -> FuncOp:
    callee = SymbolTable.lookup_symbol(_symbols_around(op), name)
    if not isinstance(callee, FuncOp) or not callee.body.blocks:
        raise Refusal(op, f"function '{name.string_value()}' has no body in this module, and cannot be executed")
    if callee.is_ancestor(op):
        raise Refusal(op, f"function '{name.string_value()}' calls itself, and cannot be executed")
    return callee


def _symbols_around(op: Operation) -> Operation:
    """Return the innermost enclosing symbol table. Unregistered operations, which xDSL counts as symbol tables, are
    skipped.
    """
    holder: Operation | None = op
    while holder is not None and not holder.has_trait(SymbolTable, value_if_unregistered=False):
        holder = holder.parent_op()
    if holder is None:
        raise Refusal(op, "it is not inside a module that could define its callee")
    return holder


def _dead_after(
    operations: Sequence[Operation], reads: Sequence[Sequence[SSAValue]], end: Operation
) -> list[list[SSAValue]]:
    """Return for each operation the values of the block that have no later use."""
    last: dict[SSAValue, int] = {value: index for index, op in enumerate(operations) for value in op.results}
    for index, values in enumerate(reads):
        last.update((value, index) for value in values if value in last)
    dead: list[list[SSAValue]] = [[] for _ in operations]
    for value in last.keys() - set(end.operands):
        dead[last[value]].append(value)
    return dead


def _consecutive(places: Sequence[int]) -> slice:
    return slice(places[0], places[-1] + 1) if places else slice(0, 0)


def _around(block: Block) -> Operation:
    parent = block.parent_op()
    assert parent is not None, "the block of a program lies in an operation"
    return parent
