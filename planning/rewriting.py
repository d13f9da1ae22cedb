"""A graph as it will be once a plan is carried out: what copies cost is reckoned here before a program is touched.

`recompute-clone` and `recompute-lower` write the same program as IR; a test holds the two together, operation by
operation.

    3: tanh reads 2, makes 3               3: tanh
    ...                                    9: barrier reads 2, 8 makes 10, 11      8: the cotangent that it waits for
    9: multiply reads 8, 3         ->     10: tanh reads 10, makes 12              a copy of 3
                                          11: multiply reads 11, 12
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from .graph import OUTSIDE, Graph
from .plan import Batch, CopyGroup, Plan

BARRIER = -1
"""In place of the operation that a new one is a copy of."""

BARRIER_NAME = "stablehlo.optimization_barrier"


class Instruction(NamedTuple):
    """An operation of the new program: `origin`, which one of the graph it is, or copies, or `BARRIER`; `is_new`: it is
    none of the graph's. It `reads` in the order of the original's. A barrier makes a value of each that it reads."""

    origin: int
    phase: str
    is_new: bool
    reads: tuple[int, ...]
    makes: tuple[int, ...]


@dataclass(frozen=True)
class Rewritten:
    """`stands_for`: for each value that of the graph which it is, or copies, or delays. The first are the graph's own,
    those that nobody makes any more among them."""

    operations: tuple[Instruction, ...]
    stands_for: tuple[int, ...]

    @cached_property
    def maker(self) -> tuple[int, ...]:
        """For each value the operation that makes it, or `OUTSIDE`."""
        found = [OUTSIDE] * len(self.stands_for)
        for op, instruction in enumerate(self.operations):
            for value in instruction.makes:
                found[value] = op
        return tuple(found)


@dataclass(frozen=True)
class HoldingBack:
    """In front of the operation `before`, a barrier over these `values`: who reads one from there on waits for all."""

    before: int
    values: tuple[int, ...]


def carried_out(graph: Graph, plan: Plan, ordered: bool = True) -> Rewritten:
    """The graph with the plan's copies, without what is dead then.

    `ordered`: with barriers in front of copies, as on a target that runs what is ready.
    """
    writer, groups = _Writer(graph, ordered), dict[int, list[CopyGroup]]()
    for group in plan.groups:
        groups.setdefault(group.before, []).append(group)
    for op in range(len(graph)):
        for group in groups.get(op, ()):
            writer.add(group)
        writer.keep(op)
    return Rewritten(tuple(_alive(graph, writer.written)), tuple(writer.stands_for))


def held_back(graph: Graph, program: Rewritten, barriers: Sequence[HoldingBack]) -> Rewritten:
    """The program with these barriers besides. `graph`: the program as a graph, whose numbers they speak in."""
    if not barriers:
        return program
    writer, standing = _Writer(graph), dict[int, list[HoldingBack]]()
    for barrier in barriers:
        standing.setdefault(barrier.before, []).append(barrier)
    for op in range(len(graph)):
        for barrier in standing.get(op, ()):
            writer.barrier((), barrier.values, graph.phases[op])
        writer.keep(op)
    return Rewritten(
        tuple([_as_before(program, one) for one in writer.written]),
        tuple([program.stands_for[value] for value in writer.stands_for]),
    )


def _as_before(program: Rewritten, one: Instruction) -> Instruction:
    """An operation of a program made from the program, in terms of the graph before both."""
    if one.origin == BARRIER:
        return one
    first = program.operations[one.origin]
    if one.reads is first.reads:
        return first
    return Instruction(first.origin, one.phase, first.is_new, one.reads, one.makes)


@dataclass
class _Writer:
    """Goes through the graph once.

    `copy_of`: the copy that the backward pass reads in place of a value by now, and in front of what it was made.
    `delayed`: what gradient operations read in place of a value that a group reads, and `passed` what everybody reads
    in place of a value that was waited for.
    """

    graph: Graph
    ordered: bool = True
    written: list[Instruction] = field(default_factory=list[Instruction])
    stands_for: list[int] = field(init=False)
    copy_of: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    delayed: dict[int, int] = field(default_factory=dict[int, int])
    passed: dict[int, int] = field(default_factory=dict[int, int])

    def __post_init__(self) -> None:
        self.stands_for = list(range(len(self.graph.maker)))

    def keep(self, op: int) -> None:
        """An operation of the graph, with what it reads now."""
        graph = self.graph
        reads = graph.reads[op]
        # Of most operations nothing is copied, delayed or waited for.
        if not graph.forward[op] and not self.copy_of.keys().isdisjoint(reads):
            reads = tuple([self._now(value) for value in reads])
        if graph.gradient[op] and not self.delayed.keys().isdisjoint(reads):
            reads = tuple([self.delayed.get(value, value) for value in reads])
        if not self.passed.keys().isdisjoint(reads):
            reads = tuple([self._behind(value) for value in reads])
        self.written.append(Instruction(op, graph.phases[op], False, reads, graph.makes[op]))

    def add(self, group: CopyGroup) -> None:
        mapping = {
            value: made[0]
            for value in group.inputs
            if (made := self.copy_of.get(value)) is not None and made[1] == group.before
        }
        late = [value for value in group.inputs if value not in mapping]
        for batch in group.batches:
            self._copies(batch, group.gates, mapping)
        for value in late:
            self.delayed[self._now(value)] = mapping[value]
        for value in group.replaces:
            self.copy_of[value] = mapping[value], group.before

    def _copies(self, batch: Batch, gates: Iterable[int], mapping: dict[int, int]) -> None:
        """`mapping` leads from values to their copies; the batch's are added to it."""
        inputs = [value for value in batch.inputs if value not in mapping]
        now = [self._now(value) for value in inputs]
        if now and self.ordered:
            now = self.barrier(now, [*(mapping[value] for value in batch.awaited), *gates])
        mapping.update(zip(inputs, now, strict=False))
        for op in batch.operations:
            reads = tuple([self._behind(mapping.get(value, value)) for value in self.graph.reads[op]])
            makes = tuple([self._new_value(value) for value in self.graph.makes[op]])
            mapping.update(zip(self.graph.makes[op], makes, strict=True))
            self.written.append(Instruction(op, "gradient", True, reads, makes))

    def barrier(self, late: Iterable[int], awaited: Iterable[int], phase: str = "gradient") -> list[int]:
        """What stands for the values behind the barrier. What is `awaited` is read there by everybody from now on."""
        gates = list(dict.fromkeys(map(self._behind, awaited)))
        read = list(dict.fromkeys([*map(self._behind, late), *gates]))
        made = [self._new_value(self.stands_for[value]) for value in read]
        self.written.append(Instruction(BARRIER, phase, True, tuple(read), tuple(made)))
        behind = dict(zip(read, made, strict=True))
        self.passed.update({gate: behind[gate] for gate in gates})
        return made

    def _now(self, value: int) -> int:
        return self.copy_of[value][0] if value in self.copy_of else value

    def _behind(self, value: int) -> int:
        while value in self.passed:
            value = self.passed[value]
        return value

    def _new_value(self, stands_for: int) -> int:
        self.stands_for.append(stands_for)
        return len(self.stands_for) - 1


def _alive(graph: Graph, written: Sequence[Instruction]) -> list[Instruction]:
    """Nobody reads what was computed for the backward pass and is recomputed there."""
    read, alive = set[int](), list[Instruction]()
    for one in reversed(written):
        may_go = one.origin == BARRIER or (one.makes and graph.effects[one.origin] is None)
        if not may_go or not read.isdisjoint(one.makes):
            alive.append(one)
            read.update(one.reads)
    alive.reverse()
    return alive


def as_graph(graph: Graph, program: Rewritten) -> Graph:
    """The new program as a graph of its own. Its values keep their numbers."""
    operations = program.operations
    origins = [operation.origin for operation in operations]
    copies = (op for op, one in enumerate(operations) if one.is_new and one.origin != BARRIER)
    return Graph(
        names=tuple([BARRIER_NAME if op == BARRIER else graph.names[op] for op in origins]),
        phases=tuple([operation.phase for operation in operations]),
        reads=tuple([operation.reads for operation in operations]),
        makes=tuple([operation.makes for operation in operations]),
        flops=tuple([0 if op == BARRIER else graph.flops[op] for op in origins]),
        inner_bytes=tuple([0 if op == BARRIER else graph.inner_bytes[op] for op in origins]),
        looks_at=tuple(
            [_looked_at(graph, operation) if operation.origin in graph.casts else None for operation in operations]
        ),
        effects=tuple([None if op == BARRIER else graph.effects[op] for op in origins]),
        maker=program.maker,
        root=_roots(graph, program),
        sizes=tuple([graph.sizes[value] for value in program.stands_for]),
        constants=frozenset([new for new, old in enumerate(program.stands_for) if old in graph.constants]),
        literals=frozenset([op for op, origin in enumerate(origins) if origin in graph.literals]),
        copies=frozenset([*copies, *(op for op, origin in enumerate(origins) if origin in graph.copies)]),
        costs=tuple([0 if op == BARRIER else graph.costs[op] for op in origins]) if graph.costs else (),
    )


def _looked_at(graph: Graph, one: Instruction) -> int:
    source = graph.looks_at[one.origin]
    assert source is not None, "only what looks at something is asked"
    return one.reads[graph.reads[one.origin].index(source)]


def _roots(graph: Graph, program: Rewritten) -> tuple[int, ...]:
    """A view shows what it reads now; what passes a barrier stays where it is."""
    found = list(range(len(program.stands_for)))
    found[: len(graph.root)] = graph.root
    for origin, _, _, reads, makes in program.operations:
        if origin == BARRIER:
            for read, made in zip(reads, makes, strict=True):
                found[made] = found[read]
            continue
        if origin not in graph.showing:
            # What owns its storage stands for itself already, and so does a copy of it.
            continue
        for old, made in zip(graph.makes[origin], makes, strict=True):
            if (root := graph.root[old]) != old:
                pairs = zip(graph.reads[origin], reads, strict=True)
                found[made] = next(found[new] for read, new in pairs if graph.root[read] == root)
    return tuple(found)
