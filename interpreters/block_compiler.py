"""A compiler that turns blocks into programs. A program is a sequence of numpy kernels (`block_programs.py`).

The compilation of a block raises `Refusal` for an operation that cannot be executed, before anything runs. The kind of
an operation determines whether its results are views, and therefore which value owns a buffer (`rules/buffers.py`):

    transpose, broadcast_in_dim       a view of the operand
    reshape                           a view if the operand is row-major, otherwise a copy
    optimization_barrier, depend      the operands themselves
    moves to and from the host        new buffers; `meter.py` counts host memory separately
    constants of equal elements       a view of one element
    loops, branches                   the buffers of their carries, see `control_flow.py`
    segment, gradient                 the values of their operations, as if inlined
    all other operations              new buffers
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import FunctionType, SymbolRefAttr, TupleType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.linalg.ops import IndexOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import SymbolTable

from ..dialects.stablehlo.composite import CompositeOp
from ..dialects.stablehlo.external import RngOp
from ..dialects.structured import GradientOp, GroupOp, SegmentOp
from ..rules.buffers import DENSE_VIEWS, FORWARDS, STRIDED_VIEWS, viewed_operand
from ..rules.effects import TERMINATORS, works_on_memory
from ..support.diagnostics import Refusal
from ..support.interface import interface_wording
from ..support.operations import name_of
from .block_programs import BlockProgram, Observer, ProgramStep, captures_of
from .checked_kernels import add_result_checks
from .combiners import combiner
from .control_flow import CONTROL_FLOW
from .identity_kernels import ORDERING, identity_kernel
from .kernels.arrays import Combine, Kernel, shape_at
from .kernels.collectives_run import ON_DEVICES, REDUCING_ON_DEVICES, SimulatedDevice
from .kernels.movement import is_splat
from .kernels.properties import symbol
from .kernels.random_bits import rng
from .kernels.structured_linalg import structured_kernel
from .kernels.table import KERNELS, STRUCTURED, WITH_COMBINER, WITH_TWO_COMBINERS
from .user_kernels import CUSTOM_CALL, registered_kernel, target_of


class BlockCompiler:
    """Compiles blocks to programs. The compiler records which values are views and caches the programs of called
    functions.

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
        # The hidden state of `stablehlo.rng`. Every run draws the same numbers, in the order of the operations.
        self.generator = np.random.default_rng(0)

    def function(self, function: FuncOp) -> BlockProgram:
        """Compile a function and the functions that it calls. Raises `Refusal` for an operation that cannot be
        executed.
        """
        if len(function.body.blocks) != 1:
            name = function.sym_name.data
            count = len(function.body.blocks)
            raise Refusal(
                function,
                f"function '{name}' has {count} blocks; the interpreter supports only functions with one block",
            )
        return self.block(function.body.block)

    def block(self, block: Block, outer: Sequence[SSAValue] = ()) -> BlockProgram:
        """Compile a block. Raises `Refusal` for an operation that cannot be executed.

        `outer`: the captures of the block. The program takes them after the arguments of the block.
        """
        end = block.last_op
        if end is None or name_of(end) not in TERMINATORS:
            raise Refusal(
                end or _parent_of(block),
                "the block cannot be executed: its last operation is not a known terminator",
            )
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
                results=_as_slice([places[result] for result in op.results]),
                dead=tuple(places[value] for value in last_reads),
            )
            for op, read, last_reads in zip(operations, reads, dead, strict=True)
        ]
        outputs = tuple(places[value] for value in end.operands)
        return BlockProgram(tuple(steps), end, outputs, len(places), self.observer)

    def kernel(self, op: Operation) -> Kernel:
        """Return the kernel of an operation. The kernel takes the operands, then the captures of the regions.

        Raises:
            Refusal: The operation cannot be executed.
        """
        try:
            kernel = self._kernel(op)
        except ValueError as error:
            raise Refusal(op, f"{name_of(op)} cannot be executed: {error}") from error
        if kernel is None:
            raise Refusal(op, why_no_kernel(op))
        return self._following_layout(op, kernel)

    def _kernel(self, op: Operation) -> Kernel | None:
        """Return the kernel from the first of `KERNEL_SOURCES` that has one for the operation, or None if no source has
        one. The kernel assumes row-major operands.

        Raises:
            ValueError: The operation cannot be executed; the message gives the reason.
        """
        if works_on_memory(op):
            raise ValueError("it operates on a memref; the interpreter supports only operations on values")
        for value in (*op.operands, *op.results):
            shape_at(value)
        kernels = (source.make_kernel(self, op) for source in KERNEL_SOURCES)
        return next((kernel for kernel in kernels if kernel is not None), None)

    def group(self, op: GroupOp) -> Kernel:
        """Return the kernel of a group, which runs the group's body. A result is a view if the yielded value is a view
        or is defined outside the group."""
        run = self.block(op.body.block, captures_of(op)).run
        for result, value in zip(op.results, op.terminator.operands, strict=True):
            if value in self.strided:
                self.strided.add(result)
            if value in self.views or value.owner.parent_op() is not op:
                self.views.add(result)
        return run

    def composite(self, op: Operation) -> Kernel:
        """Return the kernel of a `stablehlo.composite`, which runs the decomposition."""
        name = symbol(op, "decomposition")
        types = FunctionType.from_lists(
            [operand.type for operand in op.operands], [result.type for result in op.results]
        )
        if (callee_type := _callee(op, name).function_type) != types:
            raise ValueError(f"it has type {types}, but its decomposition has type {callee_type}")
        return self.call(op, name)

    def call(self, op: Operation, callee: SymbolRefAttr) -> Kernel:
        """Return the kernel of a call. Each called function is compiled only once."""
        name = callee.string_value()
        if name not in self.functions:
            self.functions[name] = self.function(_callee(op, callee))
        return self.functions[name].run

    def combiner(self, op: Operation, block: Block, numbers: Sequence[SSAValue] = ()) -> Combine:
        """Return a region on scalars as a function on vectors.

        `numbers`: loop indices, as values, that the compiled region takes after its arguments.
        """
        # The new compiler has no observer, because the storage of scalars is not counted.
        return combiner(BlockCompiler().block(block, (*numbers, *captures_of(op))), block, len(numbers))

    def structured_kernel(self, op: Operation) -> Kernel:
        """Make the kernel of a structured operation. After its arguments, the body takes the loop indices that
        `linalg.index` reads.
        """
        block = op.regions[0].block
        index_ops = [inner for inner in block.ops if isinstance(inner, IndexOp)]
        combine = self.combiner(op, block, [inner.result for inner in index_ops])
        return structured_kernel(op, combine, [inner.dim.value.data for inner in index_ops])

    def _following_layout(self, op: Operation, kernel: Kernel) -> Kernel:
        """Record which results are views, and return the kernel. For a dense view of an operand that is not row-major,
        return a kernel that copies the operand first."""
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
        elif name in DENSE_VIEWS or is_splat(op):
            self.views.update(op.results)
        return kernel


def why_no_kernel(op: Operation) -> str:
    """Return the reason why an operation without a kernel cannot be executed, and the remedy."""
    place = interface_wording(" in a file for --load-rules", "")
    remedy = f"declare its numpy implementation{place}: recompute.interpreters.register_kernel"
    if (target := target_of(op)) is None:
        known = f"{name_of(op)} cannot be executed: the interpreter does not know this operation"
        return f"{known}; {remedy} (docs/foreign_dialects.md)"
    return (
        f"{name_of(op)} @{target} cannot be executed: the interpreter does not know this target; {remedy}"
        f'("{CUSTOM_CALL}", make, target="{target}") (docs/foreign_dialects.md)'
    )


@dataclass(frozen=True)
class KernelSource:
    """A source of kernels.

    Attributes:
        make_kernel: A function that returns the kernel of an operation, or None for an operation that the source does
            not support.
        names: The operations that the source always supports, by name.
    """

    make_kernel: Callable[[BlockCompiler, Operation], Kernel | None]
    names: Collection[str] = ()


def _from_user(compiler: BlockCompiler, op: Operation) -> Kernel | None:
    make = registered_kernel(op)
    return None if make is None else add_result_checks(op, make)


def _from_control_flow(compiler: BlockCompiler, op: Operation) -> Kernel | None:
    make = CONTROL_FLOW.get(name_of(op))
    if make is None:
        return None
    if any(isinstance(value.type, TupleType) for value in (*op.operands, *op.results)):
        raise ValueError("the interpreter does not support loops or branches with tuples")
    return make(compiler, op)


def _from_group(compiler: BlockCompiler, op: Operation) -> Kernel | None:
    return compiler.group(op) if isinstance(op, GroupOp) else None


def _from_callee(compiler: BlockCompiler, op: Operation) -> Kernel | None:
    if isinstance(op, CallOp):
        return compiler.call(op, op.callee)
    return compiler.composite(op) if isinstance(op, CompositeOp) else None


def _from_generator(compiler: BlockCompiler, op: Operation) -> Kernel | None:
    return rng(op, compiler.generator) if isinstance(op, RngOp) else None


def _from_devices(compiler: BlockCompiler, op: Operation) -> Kernel | None:
    device, name = compiler.device, name_of(op)
    if device is None:
        return None
    if name in ON_DEVICES:
        return ON_DEVICES[name](op, device)
    if name in REDUCING_ON_DEVICES:
        return REDUCING_ON_DEVICES[name](op, device, compiler.combiner(op, op.regions[0].block))
    return None


def _from_structure(compiler: BlockCompiler, op: Operation) -> Kernel | None:
    return compiler.structured_kernel(op) if name_of(op) in STRUCTURED else None


def _from_combiners(compiler: BlockCompiler, op: Operation) -> Kernel | None:
    name = name_of(op)
    if name in WITH_COMBINER:
        return WITH_COMBINER[name](op, compiler.combiner(op, op.regions[0].block))
    if name in WITH_TWO_COMBINERS:
        return WITH_TWO_COMBINERS[name](op, *(compiler.combiner(op, region.block) for region in op.regions))
    return None


def _from_table(compiler: BlockCompiler, op: Operation) -> Kernel | None:
    make = KERNELS.get(name_of(op))
    return None if make is None else make(op)


def _from_identity(compiler: BlockCompiler, op: Operation) -> Kernel | None:
    return identity_kernel(op)


KERNEL_SOURCES: tuple[KernelSource, ...] = (
    KernelSource(_from_user),  # first, so that users can replace built-in kernels
    KernelSource(_from_devices),  # before the table, which has the collectives of a single process
    KernelSource(_from_control_flow, CONTROL_FLOW),
    KernelSource(_from_group, (SegmentOp.name, GradientOp.name)),
    KernelSource(_from_callee, (CallOp.name, CompositeOp.name)),
    KernelSource(_from_generator, (RngOp.name,)),
    KernelSource(_from_structure, STRUCTURED),
    KernelSource(_from_combiners, (*WITH_COMBINER, *WITH_TWO_COMBINERS)),
    KernelSource(_from_table, KERNELS),
    KernelSource(_from_identity, [kind.name for kind in ORDERING]),
)
"""The sources of kernels, in order of precedence: the kernel of an operation comes from the first source that has one.
The order of the sources after the first two is arbitrary, because they have no operation in common."""


def _on_copy(index: int, kernel: Kernel) -> Kernel:
    """Return a kernel that passes a row-major copy of the operand at `index` to another kernel."""
    return lambda *operands: kernel(*operands[:index], operands[index].copy(), *operands[index + 1 :])


def is_known(kind: type[Operation]) -> bool:
    """Return whether the interpreter has kernels for operations of this class."""
    return any(kind.name in source.names for source in KERNEL_SOURCES)


def _callee(op: Operation, name: SymbolRefAttr) -> FuncOp:
    callee = SymbolTable.lookup_symbol(_symbol_table_of(op), name)
    if not isinstance(callee, FuncOp) or not callee.body.blocks:
        raise Refusal(op, f"function '{name.string_value()}' cannot be executed: it has no body in this module")
    if callee.is_ancestor(op):
        raise Refusal(op, f"function '{name.string_value()}' cannot be executed: it calls itself")
    return callee


def _symbol_table_of(op: Operation) -> Operation:
    """Return the innermost symbol table around `op`. Unregistered operations are skipped, although xDSL treats them as
    symbol tables.
    """
    holder: Operation | None = op
    while holder is not None and not holder.has_trait(SymbolTable, value_if_unregistered=False):
        holder = holder.parent_op()
    if holder is None:
        raise Refusal(op, f"{name_of(op)} is not inside a module, so its callee is unknown")
    return holder


def _dead_after(
    operations: Sequence[Operation], reads: Sequence[Sequence[SSAValue]], end: Operation
) -> list[list[SSAValue]]:
    """Return, for each operation, the values of the block that have no use after this operation."""
    last: dict[SSAValue, int] = {value: index for index, op in enumerate(operations) for value in op.results}
    for index, values in enumerate(reads):
        last.update((value, index) for value in values if value in last)
    dead: list[list[SSAValue]] = [[] for _ in operations]
    for value in last.keys() - set(end.operands):
        dead[last[value]].append(value)
    return dead


def _as_slice(places: Sequence[int]) -> slice:
    return slice(places[0], places[-1] + 1) if places else slice(0, 0)


def _parent_of(block: Block) -> Operation:
    parent = block.parent_op()
    assert parent is not None, "the block of a program is in an operation"
    return parent
