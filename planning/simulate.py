"""Apply a plan to a graph, so that the peak of the plan is known before any program is rewritten.

`recompute-clone` and `recompute-lower` write the same program as IR; a test compares the two, operation by operation.

    3: tanh reads 2, makes 3               3: tanh
    ...                                    9: barrier reads 2, 8 makes 10, 11      8: the cotangent that it waits for
    9: multiply reads 8, 3         ->     10: tanh reads 10, makes 12              a copy of 3
                                          11: multiply reads 11, 12
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import TypeVar, cast

from ..support.phase import Phase
from .graph import BARRIER_ORIGIN, NO_MAKER, Graph, Instruction
from .plan import Batch, CopyGroup, Plan

BARRIER_NAME = "stablehlo.optimization_barrier"
T = TypeVar("T")


Values = tuple[int, ...]
Columns = tuple[tuple[int, ...], tuple[str, ...], tuple[bool, ...], tuple[Values, ...], tuple[Values, ...]]


@dataclass(frozen=True)
class SimulatedProgram:
    """The program that results from applying a plan to a graph.

    Attributes:
        operations: The operations, in program order.
        stands_for: For each value of the program, the graph value with the same contents: the value itself, or the
            value that it copies or delays. The values of the graph come first, including results of dead operations.
    """

    operations: tuple[Instruction, ...]
    stands_for: tuple[int, ...]

    @cached_property
    def columns(self) -> Columns:
        """The attributes of all operations, as five columns: `origin`, `phase`, `is_new`, `reads` and `makes`."""
        if not self.operations:
            return (), (), (), (), ()
        return cast(Columns, tuple(zip(*self.operations, strict=True)))

    @cached_property
    def maker(self) -> tuple[int, ...]:
        """For each value, the operation that makes it, or `NO_MAKER`."""
        maker = [NO_MAKER] * len(self.stands_for)
        for op, instruction in enumerate(self.operations):
            for value in instruction.makes:
                maker[value] = op
        return tuple(maker)


@dataclass(frozen=True)
class Barrier:
    """A barrier over `values` before the operation `before`: later readers of any of the values wait for all of the
    values."""

    before: int
    values: tuple[int, ...]


def simulate(graph: Graph, plan: Plan, keeps_barriers: bool = True) -> SimulatedProgram:
    """Apply a plan to the graph, and remove dead operations.

    Args:
        graph: The graph of the step.
        plan: A plan for this graph that `check.violations` accepts.
        keeps_barriers: Whether barriers are inserted before copies, as for a target that does not preserve program
            order.

    Returns:
        The new program; its values from `len(graph.maker)` on are copies and results of barriers.
    """
    writer = _GraphWriter(graph, graph.instructions, keeps_barriers)
    groups = dict[int, list[CopyGroup]]()
    for group in plan.groups:
        groups.setdefault(group.before, []).append(group)
    for place in sorted(groups):
        writer.append_until(place)
        for group in groups[place]:
            writer.append_group(group)
    writer.append_until(len(graph))
    return SimulatedProgram(tuple(_remove_dead(graph, writer.written)), tuple(writer.stands_for))


def insert_barriers(graph: Graph, program: SimulatedProgram, barriers: Sequence[Barrier]) -> SimulatedProgram:
    """Insert barriers into the program.

    Args:
        graph: The program as a graph (`as_graph`).
        program: The program.
        barriers: The barriers, with the indices of operations and values in the program.
    """
    if not barriers:
        return program
    writer = _GraphWriter(graph, program.operations)
    barriers_at = dict[int, list[Barrier]]()
    for barrier in barriers:
        barriers_at.setdefault(barrier.before, []).append(barrier)
    for place in sorted(barriers_at):
        writer.append_until(place)
        for barrier in barriers_at[place]:
            writer.append_barrier((), barrier.values, graph.phases[place])
    writer.append_until(len(graph))
    stands_for = tuple([program.stands_for[value] for value in writer.stands_for])
    return SimulatedProgram(tuple(writer.written), stands_for)


@dataclass
class _GraphWriter:
    """A writer that builds the new program operation by operation.

    Attributes:
        unchanged: The operations of the graph as instructions, with their origins in the new program.
        written: The instructions so far.
        stands_for: As in `SimulatedProgram`.
        copy_of: For each value, its latest copy and the operation before which this copy is inserted. The backward pass
            reads the copy.
        delayed: For each input of a group, the result of the barrier. Gradient operations read this result.
        gated: For each gate, the result of the barrier. All later operations read this result.
        replaced: The values in `copy_of`, `delayed` and `gated`: operations that read none of them stay unchanged.
        next: The next operation of the graph.
    """

    graph: Graph
    unchanged: Sequence[Instruction]
    keeps_barriers: bool = True
    written: list[Instruction] = field(default_factory=list[Instruction])
    stands_for: list[int] = field(init=False)
    copy_of: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    delayed: dict[int, int] = field(default_factory=dict[int, int])
    gated: dict[int, int] = field(default_factory=dict[int, int])
    replaced: set[int] = field(default_factory=set[int])
    next: int = 0

    def __post_init__(self) -> None:
        self.stands_for = list(range(len(self.graph.maker)))

    def append_until(self, end: int) -> None:
        """Append the operations of the graph up to `end`, exclusive, with their current operands."""
        unchanged, replaced = self.unchanged, self.replaced
        if not replaced:
            self.written.extend(unchanged[self.next : end])
        else:
            for op, reads in enumerate(self.graph.reads[self.next : end], self.next):
                self.written.append(unchanged[op] if replaced.isdisjoint(reads) else self._with_latest_operands(op))
        self.next = max(self.next, end)

    def _with_latest_operands(self, op: int) -> Instruction:
        """Return an operation of the graph with its current operands."""
        graph, unchanged = self.graph, self.unchanged[op]
        reads = graph.reads[op]
        if not graph.forward[op]:
            reads = tuple([self._latest_copy(value) for value in reads])
        if graph.gradient[op]:
            reads = tuple([self.delayed.get(value, value) for value in reads])
        reads = tuple([self._after_barriers(value) for value in reads])
        return Instruction(unchanged.origin, graph.phases[op], unchanged.is_new, reads, graph.makes[op])

    def append_group(self, group: CopyGroup) -> None:
        """Append the copies of a group, batch by batch."""
        # Inputs that an earlier group copies at the same place are already results of its barrier.
        mapping = {
            value: latest[0]
            for value in group.inputs
            if (latest := self.copy_of.get(value)) is not None and latest[1] == group.before
        }
        delayed_inputs = [value for value in group.inputs if value not in mapping]
        for batch in group.batches:
            self._append_batch(batch, group.gates, mapping)
        for value in delayed_inputs:
            self.delayed[self._latest_copy(value)] = mapping[value]
        for value in group.replaces:
            self.copy_of[value] = mapping[value], group.before
        self.replaced.update(self.delayed, group.replaces)

    def _append_batch(self, batch: Batch, gates: Iterable[int], mapping: dict[int, int]) -> None:
        """Append the copies of a batch, and add them to `mapping` (values to their copies)."""
        inputs = [value for value in batch.inputs if value not in mapping]
        operands = [self._latest_copy(value) for value in inputs]
        if operands and self.keeps_barriers:
            operands = self.append_barrier(operands, [*(mapping[value] for value in batch.awaited), *gates])
        mapping.update(zip(inputs, operands, strict=False))
        for op in batch.operations:
            reads = tuple([self._after_barriers(mapping.get(value, value)) for value in self.graph.reads[op]])
            makes = tuple([self._new_value(value) for value in self.graph.makes[op]])
            mapping.update(zip(self.graph.makes[op], makes, strict=True))
            self.written.append(Instruction(op, Phase.GRADIENT, True, reads, makes))

    def append_barrier(self, delayed: Iterable[int], awaited: Iterable[int], phase: str = Phase.GRADIENT) -> list[int]:
        """Append a barrier. All later operations read the `awaited` values through its results.

        Args:
            delayed: The values that the barrier delays for the readers of its results; other readers are not delayed.
            awaited: The values that the barrier waits for.
            phase: The phase of the barrier.

        Returns:
            The results of the barrier: first the results for `delayed`, then those for `awaited`.
        """
        gates = list(dict.fromkeys(map(self._after_barriers, awaited)))
        operands = list(dict.fromkeys([*map(self._after_barriers, delayed), *gates]))
        results = [self._new_value(self.stands_for[value]) for value in operands]
        self.written.append(Instruction(BARRIER_ORIGIN, phase, True, tuple(operands), tuple(results)))
        result_of = dict(zip(operands, results, strict=True))
        self.gated.update({gate: result_of[gate] for gate in gates})
        self.replaced.update(gates)
        return results

    def _latest_copy(self, value: int) -> int:
        """Return the latest copy of a value, or the value itself if it has no copy."""
        return self.copy_of[value][0] if value in self.copy_of else value

    def _after_barriers(self, value: int) -> int:
        """Return the current replacement of a gate: the result of the last barrier that waited for the gate."""
        while value in self.gated:
            value = self.gated[value]
        return value

    def _new_value(self, stands_for: int) -> int:
        self.stands_for.append(stands_for)
        return len(self.stands_for) - 1


def _remove_dead(graph: Graph, written: Sequence[Instruction]) -> list[Instruction]:
    """Remove operations whose results are not read, such as originals that copies replace for all readers."""
    read, live = set[int](), list[Instruction]()
    for instruction in reversed(written):
        origin = instruction.origin
        is_removable = origin == BARRIER_ORIGIN or (instruction.makes and graph.effects[origin] is None)
        if not is_removable or not read.isdisjoint(instruction.makes):
            live.append(instruction)
            read.update(instruction.reads)
    live.reverse()
    return live


def as_graph(graph: Graph, program: SimulatedProgram) -> Graph:
    """Return the new program as a graph. Values have the same indices as in the program."""
    origins, phases, is_new, reads, makes = program.columns
    # The origin of barriers, -1, selects the entry that is appended here.
    of_origins, of_values = getter_at(origins), getter_at(program.stands_for)
    first_new = len(graph.maker)
    stands_for = program.stands_for
    copies = [op for op, origin in enumerate(origins) if is_new[op] and origin != BARRIER_ORIGIN]
    viewed = [
        _viewed_value(graph, *pair) if pair[0] in graph.casts else None for pair in zip(origins, reads, strict=True)
    ]
    return Graph(
        names=of_origins((*graph.names, BARRIER_NAME)),
        phases=phases,
        reads=reads,
        makes=makes,
        flops=of_origins((*graph.flops, 0)),
        inner_bytes=of_origins((*graph.inner_bytes, 0)),
        viewed=tuple(viewed),
        effects=of_origins((*graph.effects, None)),
        maker=program.maker,
        root=_roots(graph, program),
        sizes=of_values(graph.sizes),
        constants=graph.constants.union(
            [new for new in range(first_new, len(stands_for)) if stands_for[new] in graph.constants]
        ),
        literals=frozenset([op for op, origin in enumerate(origins) if origin in graph.literals]),
        copies=frozenset([*copies, *(op for op, origin in enumerate(origins) if origin in graph.copies)]),
        costs=of_origins((*graph.costs, 0)) if graph.costs else (),
        counts_returned=graph.counts_returned,
    )


def getter_at(indices: Sequence[int]) -> Callable[[Sequence[T]], tuple[T, ...]]:
    """Return a function that selects the entries at these indices from a sequence. It is faster than a loop."""
    if len(indices) < 2:
        # With one index, `itemgetter` returns the entry itself instead of a tuple.
        return lambda entries: tuple([entries[index] for index in indices])
    return itemgetter(*indices)


def _viewed_value(graph: Graph, origin: int, reads: tuple[int, ...]) -> int:
    source = graph.viewed[origin]
    assert source is not None, "the operation is a view or a cast"
    return reads[graph.reads[origin].index(source)]


def _roots(graph: Graph, program: SimulatedProgram) -> tuple[int, ...]:
    """Return the owner of the storage of each value. A view shares the storage of its current operand, and a result of
    a barrier shares the storage of the corresponding operand."""
    roots = list(range(len(program.stands_for)))
    roots[: len(graph.root)] = graph.root
    # A value that owns its storage, or a copy of such a value, is already its own root.
    sharing = graph.aliasing | {BARRIER_ORIGIN}
    for op in [op for op, origin in enumerate(program.columns[0]) if origin in sharing]:
        origin, _, _, reads, makes = program.operations[op]
        if origin == BARRIER_ORIGIN:
            for read, result in zip(reads, makes, strict=True):
                roots[result] = roots[read]
            continue
        for old, result in zip(graph.makes[origin], makes, strict=True):
            if (root := graph.root[old]) != old:
                pairs = zip(graph.reads[origin], reads, strict=True)
                roots[result] = next(roots[new] for read, new in pairs if graph.root[read] == root)
    return tuple(roots)
