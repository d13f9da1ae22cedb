"""A graph as it will be once a plan is carried out: what copies cost is reckoned here before a program is touched.

`recompute-clone` and `recompute-lower` write the same program as IR; a test holds the two together, operation by
operation.

    3: tanh reads 2, makes 3               3: tanh
    ...                                    9: barrier reads 2, 8 makes 10, 11      8: the cotangent that it waits for
    9: multiply reads 8, 3         ->     10: tanh reads 10, makes 12              a copy of 3
                                          11: multiply reads 11, 12
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from .graph import OUTSIDE, Graph
from .plan import Batch, CopyGroup, Plan

Fact = TypeVar("Fact")

BARRIER = -1
"""In place of the operation that a new one is a copy of."""

BARRIER_NAME = "stablehlo.optimization_barrier"


@dataclass(frozen=True)
class Rewritten:
    """For each operation of the new program: `origin`, which operation of the graph it is, or copies, or `BARRIER`;
    `phases`; `is_new`; `reads`, in the order of the original's, and `makes`. A barrier makes a value of each it reads.

    For each value `stands_for`: the value of the graph that it is, or copies, or delays. The first are the graph's own,
    those that nobody makes any more among them.
    """

    origin: tuple[int, ...]
    phases: tuple[str, ...]
    is_new: tuple[bool, ...]
    reads: tuple[tuple[int, ...], ...]
    makes: tuple[tuple[int, ...], ...]
    stands_for: tuple[int, ...]


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
    return _without_dead(graph, writer.written())


def held_back(graph: Graph, barriers: Sequence[HoldingBack]) -> Rewritten:
    """The graph with these barriers."""
    writer, standing = _Writer(graph), dict[int, list[HoldingBack]]()
    for barrier in barriers:
        standing.setdefault(barrier.before, []).append(barrier)
    for op in range(len(graph)):
        for barrier in standing.get(op, ()):
            writer.barrier((), barrier.values, graph.phases[op])
        writer.keep(op)
    return writer.written()


@dataclass
class _Writer:
    """Goes through the graph once.

    `copy_of`: the copy that the backward pass reads in place of a value by now, and in front of what it was made.
    `delayed`: what gradient operations read in place of a value that a group reads, and `passed` what everybody reads
    in place of a value that was waited for.
    """

    graph: Graph
    ordered: bool = True
    origin: list[int] = field(default_factory=list[int])
    phases: list[str] = field(default_factory=list[str])
    is_new: list[bool] = field(default_factory=list[bool])
    reads: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    makes: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    stands_for: list[int] = field(default_factory=list[int])
    copy_of: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    delayed: dict[int, int] = field(default_factory=dict[int, int])
    passed: dict[int, int] = field(default_factory=dict[int, int])

    def __post_init__(self) -> None:
        self.stands_for.extend(range(len(self.graph.maker)))

    def written(self) -> Rewritten:
        columns = (self.origin, self.phases, self.is_new, self.reads, self.makes, self.stands_for)
        return Rewritten(*map(tuple, columns))

    def keep(self, op: int) -> None:
        """An operation of the graph, with what it reads now."""
        graph = self.graph
        reads: Sequence[int] = graph.reads[op]
        if not graph.forward[op]:
            reads = [self._now(value) for value in reads]
        if graph.gradient[op]:
            reads = [self.delayed.get(value, value) for value in reads]
        self._write(op, graph.phases[op], False, reads, graph.makes[op])

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
            reads = [mapping.get(value, value) for value in self.graph.reads[op]]
            makes = [self._new_value(value) for value in self.graph.makes[op]]
            mapping.update(zip(self.graph.makes[op], makes, strict=True))
            self._write(op, "gradient", True, reads, makes)

    def barrier(self, late: Iterable[int], awaited: Iterable[int], phase: str = "gradient") -> list[int]:
        """What stands for the values behind the barrier. What is `awaited` is read there by everybody from now on."""
        gates = list(dict.fromkeys(map(self._behind, awaited)))
        read = list(dict.fromkeys([*map(self._behind, late), *gates]))
        made = [self._new_value(self.stands_for[value]) for value in read]
        self._write(BARRIER, phase, True, read, made)
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

    def _write(self, origin: int, phase: str, is_new: bool, reads: Iterable[int], makes: Iterable[int]) -> None:
        self.origin.append(origin)
        self.phases.append(phase)
        self.is_new.append(is_new)
        self.reads.append(tuple(map(self._behind, reads)) if origin != BARRIER else tuple(reads))
        self.makes.append(tuple(makes))


def _without_dead(graph: Graph, program: Rewritten) -> Rewritten:
    """Nobody reads what was computed for the backward pass and is recomputed there."""
    read, alive = set[int](), list[int]()
    for op in reversed(range(len(program.origin))):
        origin, makes = program.origin[op], program.makes[op]
        may_go = origin == BARRIER or (makes and graph.effects[origin] is None)
        if not may_go or not read.isdisjoint(makes):
            alive.append(op)
            read.update(program.reads[op])
    alive.reverse()
    columns = (program.origin, program.phases, program.is_new, program.reads, program.makes)
    return Rewritten(*(tuple([column[op] for op in alive]) for column in columns), program.stands_for)


def as_graph(graph: Graph, program: Rewritten) -> Graph:
    """The new program as a graph of its own. Its values keep their numbers."""
    maker = [OUTSIDE] * len(program.stands_for)
    for op, values in enumerate(program.makes):
        for value in values:
            maker[value] = op
    own = [(op, origin) for op, origin in enumerate(program.origin) if origin != BARRIER]
    return Graph(
        names=_of_origins(program, graph.names, BARRIER_NAME),
        phases=program.phases,
        reads=program.reads,
        makes=program.makes,
        flops=_of_origins(program, graph.flops, 0),
        inner_bytes=_of_origins(program, graph.inner_bytes, 0),
        looks_at=tuple([_looked_at(graph, program, op) for op in range(len(program.origin))]),
        effects=_of_origins(program, graph.effects, None),
        maker=tuple(maker),
        root=_roots(graph, program),
        sizes=tuple([graph.sizes[value] for value in program.stands_for]),
        constants=frozenset([new for new, old in enumerate(program.stands_for) if old in graph.constants]),
        literals=frozenset([op for op, origin in own if origin in graph.literals]),
        copies=frozenset([op for op, origin in own if program.is_new[op] or origin in graph.copies]),
    )


def _of_origins(program: Rewritten, facts: Sequence[Fact], of_barriers: Fact) -> tuple[Fact, ...]:
    """What is known of each operation's original."""
    return tuple([of_barriers if origin == BARRIER else facts[origin] for origin in program.origin])


def _looked_at(graph: Graph, program: Rewritten, op: int) -> int | None:
    origin = program.origin[op]
    if origin == BARRIER or (source := graph.looks_at[origin]) is None:
        return None
    return program.reads[op][graph.reads[origin].index(source)]


def _roots(graph: Graph, program: Rewritten) -> tuple[int, ...]:
    """A view shows what it reads now; what passes a barrier stays where it is."""
    found = list(range(len(program.stands_for)))
    found[: len(graph.root)] = graph.root
    for op, origin in enumerate(program.origin):
        reads, makes = program.reads[op], program.makes[op]
        if origin == BARRIER:
            for read, made in zip(reads, makes, strict=True):
                found[made] = found[read]
            continue
        for old, made in zip(graph.makes[origin], makes, strict=True):
            root = graph.root[old]
            shown = made
            if root != old:
                shown = next(found[new] for read, new in zip(graph.reads[origin], reads, strict=True) if graph.root[read] == root)
            found[made] = shown
    return tuple(found)
