"""Peak bytes of temporaries of a function on XLA:CPU, unchanged or under a plan.

This module implements the memory model `xla`, which keeps barriers. The model `order`, in contrast, stores every result
and follows program order. XLA:CPU fuses operations, so that many results are never stored (`kernel_fusion.py`),
schedules kernels breadth first (`scheduled_kernels.py`), copies some operands (`kernel_copies.py`,
`buffer_assignment.py`), and assigns several values to one buffer. The model simplifies XLA's passes and has no fitted
parameters. `docs/memory.md` gives its accuracy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult

from ....dialects.dead_code import drop_dead_code, has_dead_code
from ....planning.graph import BARRIER_ORIGIN, NO_MAKER, Instruction
from ....planning.simulate import BARRIER_NAME, SimulatedProgram, getter_at
from ...step.counted_loops import trips_of
from ...step.descriptions import WHILE, module_of_stack, modules_of_copies
from ...step.marks import is_copy
from ...step.order import Order, single_block
from ...step.phases import Phases
from ..timeline import Buffer, Labels, Timeline, aliased_bytes
from .buffer_assignment import Life, outside_results
from .kernel_copies import with_kernel_copies
from .program import KernelProgram, SourceProgram
from .read_program import program_of
from .scheduled_kernels import ScheduledKernels, donated_for, donations, live_bytes
from .traits import Trait


def xla_form(function: FuncOp, order: Order | None = None) -> tuple[KernelProgram, Sequence[Operation]]:
    """Return the function as XLA:CPU rewrites it before fusion.

    Args:
        function: The function.
        order: The order of its block, if it is already computed.

    Returns:
        The rewritten program and, for each of its operations, the operation of the function from which it originates.

    Raises:
        Refusal: The function has dynamic shapes.
    """
    program, operations = _without_dead_code(function, order)
    form = with_kernel_copies(program)
    return form.program, [operations[op] for op in form.origin]


def _without_dead_code(function: FuncOp, order: Order | None) -> tuple[SourceProgram, Sequence[Operation]]:
    if not has_dead_code(function):
        block = single_block(function)
        return program_of(block, order), tuple(block.ops)
    copy = function.clone()
    block = single_block(copy)
    origin = dict(zip(block.ops, single_block(function).ops, strict=True))
    drop_dead_code(copy.body)
    return program_of(block), [origin[op] for op in block.ops]


def xla_timeline(function: FuncOp, phases: Phases | None = None, labels: Labels | None = None) -> Timeline:
    """Return the timeline of the function on XLA:CPU, with one step per kernel.

    `labels`: the labels for reports.

    Raises:
        Refusal: The function has dynamic shapes.
    """
    program, origin = xla_form(function, None if phases is None else phases.order)
    run = ScheduledKernels.of(program)
    labels = labels or Labels(phases)
    live = sorted(temporaries(donated_for(function), run), key=lambda life: life.first)
    inner = run.inner_bytes()
    own = {life.value for life in live}
    stacks = _loop_results(program, origin)
    return Timeline(
        operations=tuple([program.names[op] for op in run.schedule]),
        phases=tuple(["" if phases is None else phases.phase[origin[op]] for op in run.schedule]),
        buffers=tuple(_buffer(life, program, origin, labels, stacks) for life in live),
        inner_bytes=inner,
        live_bytes=live_bytes(live, inner),
        argument_bytes=sum(program.sizes[: program.arguments]),
        result_bytes=sum([program.sizes[value] for value in program.operands[program.terminator]]),
        aliased_bytes=aliased_bytes(function, single_block(function)),
        in_results=tuple(
            [_buffer(life, program, origin, labels, stacks) for life in run.temporaries() if life.value not in own]
        ),
        in_loops=tuple(_copies_in_loops(single_block(function), 1)),
    )


def _copies_in_loops(block: Block, runs: int) -> Iterator[Buffer]:
    """Yield the copies that the regions of a block store, with their bytes over all iterations.

    `runs`: the number of times that the block runs.
    """
    for op in block.ops:
        for inside in (inside for region in op.regions for inside in region.blocks):
            inner_runs = runs * trips_of(op)
            if any(is_copy(inner) for inner in inside.ops):
                yield from _stored_copies(inside, inner_runs)
            yield from _copies_in_loops(inside, inner_runs)


def _stored_copies(block: Block, runs: int) -> Iterator[Buffer]:
    """Yield the copies that the kernels of a block store, with `runs` times their bytes."""
    form = with_kernel_copies(program_of(block))
    operations = tuple(block.ops)
    modules = modules_of_copies(filter(is_copy, operations))
    for life in ScheduledKernels.of(form.program).lives:
        maker = form.program.maker[life.value]
        if maker != NO_MAKER and (copy := operations[form.origin[maker]]) in modules:
            yield replace(Labels().buffer(copy, runs * life.bytes, 0, 0), module=modules[copy])


def temporaries(donated: Mapping[int, int], run: ScheduledKernels) -> list[Life]:
    """Return the live ranges that do not fit in the memory of arguments and results.

    `donated`: see `donations`.
    """
    places = {life.value: [life] for life in run.lives if life.value in run.returned}
    own_lives = run.temporaries()
    for donation in donations(donated, run):
        if donation.result in places:
            places[donation.result].append(donation.held)
        if donation.copy is not None:
            own_lives.append(donation.copy)
    return outside_results(own_lives, list(places.values()))


def _buffer(
    life: Life,
    program: KernelProgram,
    origin: Sequence[Operation],
    labels: Labels,
    stacks: Mapping[int, OpResult],
) -> Buffer:
    op = program.maker[life.value]
    if op == NO_MAKER:
        return Buffer(
            label="copy of a donated argument",
            phase="",
            segment="",
            bytes=life.bytes,
            first=life.first,
            last=life.last,
            recomputed=False,
        )
    buffer = replace(labels.buffer(origin[op], life.bytes, life.first, life.last), label=program.names[op])
    result = stacks.get(life.value)
    return replace(buffer, module=module_of_stack(result) or buffer.module) if result is not None else buffer


def _loop_results(program: KernelProgram, origin: Sequence[Operation]) -> Mapping[int, OpResult]:
    """Map each loop-carried storage to the loop result that it becomes."""
    return {
        program.root[value]: origin[op].results[index]
        for op, name in enumerate(program.names)
        if name == WHILE
        for values in (program.operands[op], program.makes[op])
        for index, value in enumerate(values)
    }


T = TypeVar("T")


@dataclass(frozen=True)
class PlainStep:
    """The unchanged step in the representation of the memory model `xla`.

    Operations and values have the indices that they have in the step's graph. `donated`: see `donations`.
    """

    program: SourceProgram
    donated: Mapping[int, int]

    @classmethod
    def of(cls, function: FuncOp, order: Order | None = None) -> PlainStep:
        """Convert a function to a `PlainStep`.

        `order`: the order of its block, if it is already computed.

        Raises:
            Refusal: The function has dynamic shapes.
        """
        return cls(program_of(single_block(function), order), donated_for(function))

    def peak_bytes(self, rewritten: SimulatedProgram) -> int:
        """Return the peak bytes of temporaries of the rewritten step under the memory model `xla`."""
        run = ScheduledKernels.of(with_kernel_copies(_program(self.program, rewritten)).program)
        return max(live_bytes(temporaries(self.donated, run), run.inner_bytes()), default=0)


def _program(plain: SourceProgram, new: SimulatedProgram) -> SourceProgram:
    operations, (origins, _, _, reads, makes) = new.operations, new.columns
    # The origin of barriers, -1, selects the entry that is appended here.
    of_origins, at = getter_at(origins), _positions(plain, new)
    reshapes = _transferred(at, plain.reshapes)
    added = list(enumerate(new.stands_for))[len(plain.maker) :]
    behind = {value for operation in operations if operation.origin == BARRIER_ORIGIN for value in operation.makes}
    return replace(
        plain,
        names=of_origins((*plain.names, BARRIER_NAME)),
        operands=tuple([_operands(plain, operation) for operation in operations]),
        reads=reads,
        makes=makes,
        maker=new.maker,
        sizes=(*plain.sizes, *(plain.sizes[old] for _, old in added)),
        ranks=(*plain.ranks, *(plain.ranks[old] for _, old in added)),
        root=_roots(plain, new, reshapes),
        reshapes=reshapes,
        numbers=frozenset([op for origin in plain.numbers for op in at[origin]]),
        masks=frozenset([op for origin in plain.masks for op in at[origin]]),
        constants=plain.constants.union([new for new, old in added if old in plain.constants]),
        broadcasts=plain.broadcasts.union([new for new, old in added if old in plain.broadcasts]) - behind,
        bodies=_transferred(at, plain.bodies),
        handed_on=_transferred(at, plain.handed_on),
        kernels=_transferred(at, plain.kernels),
        alike={**plain.alike, **{new: plain.alike[old] for new, old in added if old in plain.alike}},
        pools=_transferred(at, plain.pools),
        spreads=_transferred(at, plain.spreads),
        traits=of_origins((*plain.traits, Trait.NONE)),
    )


def _positions(plain: SourceProgram, new: SimulatedProgram) -> Sequence[Sequence[int]]:
    """Return, for each operation of the unchanged program, its own position and the positions of its copies in the
    rewritten program."""
    positions: list[list[int]] = [[] for _ in range(len(plain))]
    for op, origin in enumerate(new.columns[0]):
        if origin != BARRIER_ORIGIN:
            positions[origin].append(op)
    return positions


def _transferred(positions: Sequence[Sequence[int]], attributes: Mapping[int, T]) -> dict[int, T]:
    """Return a table indexed by the operations of the rewritten program, given a table indexed by the operations of the
    unchanged program."""
    return {op: attribute for origin, attribute in attributes.items() for op in positions[origin]}


def _operands(plain: SourceProgram, instruction: Instruction) -> tuple[int, ...]:
    """Return the operands of an instruction. Operands that its original operation reads repeatedly are repeated."""
    origin = instruction.origin
    if origin == BARRIER_ORIGIN or plain.operands[origin] == plain.reads[origin]:
        return instruction.reads
    read_as = dict(zip(plain.reads[origin], instruction.reads, strict=True))
    return tuple([read_as[value] for value in plain.operands[origin]])


def _roots(plain: SourceProgram, new: SimulatedProgram, reshapes: Mapping[int, int]) -> tuple[int, ...]:
    """Return, for each value, the owner of its storage. A reshape shares the storage of its operand. All other values
    have their own storage."""
    roots = list(range(len(new.stands_for)))
    roots[: len(plain.root)] = plain.root
    for op in sorted(reshapes):
        instruction = new.operations[op]
        source = roots[_operands(plain, instruction)[reshapes[op]]]
        for value in instruction.makes:
            roots[value] = source
    return tuple(roots)
