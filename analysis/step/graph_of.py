"""From the operations of a block to a graph of numbers, and back from its numbers to operations and values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...planning.evaluate import live_bytes
from ...planning.graph import OUTSIDE, Graph
from ...rules.costs.cost import CostsOf
from ...rules.effects import why_impure
from ...rules.flops import flops
from ...rules.kinds import is_cast, is_constant
from ...rules.names import name_of
from ...rules.storage import carried_values, region_storage, viewed_operand
from ...support.diagnostics import Refusal
from .alike_regions import Key, region_key
from .constants import constants_only
from .copied import is_copy
from .order import Order
from .storage import Storages, storages, value_bytes


@dataclass(frozen=True)
class Numbered:
    """A graph, and the operations and values behind its numbers."""

    graph: Graph
    operations: Sequence[Operation]
    values: Sequence[SSAValue]
    number: Mapping[SSAValue, int]
    strided: Set[SSAValue]

    def values_of(self, numbers: Iterable[int]) -> list[SSAValue]:
        return [self.values[number] for number in numbers]

    def operations_of(self, numbers: Iterable[int]) -> list[Operation]:
        return [self.operations[number] for number in numbers]


def graph_of(
    order: Order,
    phase: Mapping[Operation, str] | None = None,
    constants_outside: Iterable[SSAValue] = (),
    strided_outside: Set[SSAValue] = frozenset(),
    bare: bool = False,
    costs: CostsOf | None = None,
) -> Numbered:
    """The graph of a block in this order. `phase`: of each operation; none where nothing is known.

    The two after it: values from around the block that come from constants, and that do not lie row by row. `bare`:
    what only who plans asks for is left out. `costs`: what planners keep low; None for FLOPs. Raises `Refusal` for
    storages of unknown size, and for operations without a cost.
    """
    constants, shared = constants_only(order, constants_outside), storages(order, strided_outside)
    operations, reads = order.operations, order.reads
    values = _values(order, reads)
    number = {value: index for index, value in enumerate(values)}
    # By identity, which values are hashed by anyway: ints are looked up several times as fast.
    index = {id(value): index for index, value in enumerate(values)}
    made = [[index[id(result)] for result in op.results] for op in operations]
    inner = _InnerBytes(constants, shared)
    graph = Graph(
        names=tuple(map(name_of, operations)),
        phases=tuple([phase[op] for op in operations]) if phase is not None else ("",) * len(operations),
        reads=tuple([tuple([index[id(value)] for value in read]) for read in reads]),
        makes=tuple(map(tuple, made)),
        flops=() if bare else tuple(map(flops, operations)),
        inner_bytes=tuple([inner.of(op) if op.regions else 0 for op in operations]),
        looks_at=() if bare else tuple([None if (v := _looks_at(op)) is None else number[v] for op in operations]),
        effects=() if bare else tuple(map(why_impure, operations)),
        maker=_makers(made, len(values)),
        root=_roots(index, values, shared),
        sizes=_sizes(values, constants, shared),
        constants=frozenset([number[value] for value in constants if value in number]),
        literals=frozenset([i for i, op in enumerate(operations) if is_constant(op)]),
        copies=frozenset() if bare else frozenset([i for i, op in enumerate(operations) if is_copy(op)]),
        costs=() if bare or costs is None else costs(operations),
    )
    return Numbered(graph, operations, values, number, shared.strided)


def _values(order: Order, reads: Sequence[Sequence[SSAValue]]) -> list[SSAValue]:
    """What comes from outside, then the results."""
    results = [result for op in order.operations for result in op.results]
    made = set(map(id, results))
    outside = dict.fromkeys([*order.block.args, *(value for read in reads for value in read if id(value) not in made)])
    return [*outside, *results]


def _makers(made: Sequence[Sequence[int]], values: int) -> tuple[int, ...]:
    found = [OUTSIDE] * values
    for op, results in enumerate(made):
        for value in results:
            found[value] = op
    return tuple(found)


def _roots(index: Mapping[int, int], values: Sequence[SSAValue], shared: Storages) -> tuple[int, ...]:
    found = list(range(len(values)))
    for value, root in shared.root.items():
        found[index[id(value)]] = index[id(root)]
    return tuple(found)


def _looks_at(op: Operation) -> SSAValue | None:
    return op.operands[0] if is_cast(op) else viewed_operand(op)


def _sizes(values: Sequence[SSAValue], constants: Set[SSAValue], shared: Storages) -> tuple[int, ...]:
    """Bytes of each value. What costs nothing may be of unknown size."""
    known = dict[int, tuple[Attribute, int]]()
    found = list[int]()
    for value in values:
        if shared.lies_on_host(value):
            found.append(0)
            continue
        type_ = value.type
        if (entry := known.get(id(type_))) is None:
            try:
                entry = type_, value_bytes(value)
            except Refusal:
                if isinstance(value.owner, Operation) and shared.of(value) is value and value not in constants:
                    raise
                entry = type_, 0
            else:
                known[id(type_)] = entry
        found.append(entry[1])
    return tuple(found)


@dataclass(frozen=True)
class _InnerBytes:
    """What regions hold: of operations that are alike the first is counted."""

    constants: Set[SSAValue]
    shared: Storages
    known: dict[Key, int] = field(default_factory=dict[Key, int])

    def of(self, op: Operation) -> int:
        if not region_storage(op):
            return 0
        key = region_key(op, self.constants, self.shared.strided)
        if (found := self.known.get(key)) is None:
            found = self.known[key] = inner_bytes(op, self.constants, self.shared)
        return found


def inner_bytes(op: Operation, constants: Set[SSAValue], shared: Storages) -> int:
    """What the regions of a loop or a branch need at their peak beyond the results of the operation.

    The results of a loop stand for the carry of the running iteration: at the start the initial values are copied into
    them. What an iteration yields is the next carry, and is alive together with the running one. What a branch yields
    becomes the results. The first region of `scf.while` has a carry of its own, which may have other types: it is alive
    until the region has handed on what becomes the results. The regions of a reduction see scalars, and need nothing.
    """
    if all(result in constants for result in op.results):
        return 0
    peaks = [
        sum(map(value_bytes, carried_values(op, stored))) + _block_peak(block, constants, shared, stored.hands_on)
        for stored, region in zip(region_storage(op), op.regions, strict=False)
        for block in region.blocks
    ]
    return max(peaks) - sum(map(value_bytes, op.results)) if peaks else 0


def _block_peak(block: Block, constants_outside: Set[SSAValue], outside: Storages, hands_on: int | None) -> int:
    """Peak of a region's block; what its terminator hands on, from that operand on, is counted, copies included."""
    order = Order.of(block)
    inside = graph_of(order, None, constants_outside, outside.strided, bare=True)
    alive = live_bytes(inside.graph, returned_too=True)
    if hands_on is not None:
        alive[-1] += _yield_copies(inside, order.operations[-1].operands[hands_on:])
    return int(alive.max(initial=0))


def _yield_copies(inside: Numbered, handed_on: Iterable[SSAValue]) -> int:
    """Bytes that the terminator must copy: arguments, views, what comes from outside, and what is yielded twice.

    What the block has stored itself becomes the next carry, or the result, as it is. Constants are no temporaries, but
    a carry is.
    """
    graph, moved, copied = inside.graph, set[SSAValue](), 0
    for value in handed_on:
        number = inside.number[value]
        own = graph.root[number] == number and graph.maker[number] != OUTSIDE
        if own and value not in moved and number not in graph.constants:
            moved.add(value)
        else:
            copied += value_bytes(value)
    return copied
