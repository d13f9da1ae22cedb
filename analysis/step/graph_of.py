"""Convert a function to the graph that planners work on, in which operations and values are indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...planning.graph import NO_MAKER, Graph
from ...planning.liveness import live_bytes
from ...rules.buffers import carried_values, region_storage, stored_bytes, viewed_operand
from ...rules.costs.cost import FLOPS_OF_EACH, CostsOf
from ...rules.effects import is_cast, why_impure_by
from ...rules.facts import Facts, OpClass
from ...rules.flops import flops
from ...support.diagnostics import Refusal
from ...support.operations import name_of, operations_in
from .marks import is_copy
from .order import Order, constants_only
from .views import Storages, storages, value_bytes

Key = tuple[object, ...]


def region_key(op: Operation, constants: Set[SSAValue], strided: Set[SSAValue]) -> Key:
    """Return a key for the bytes that an operation needs inside its regions. Operations with equal keys need the same
    number of bytes.

    The key consists of operation names, use-def edges, types, and whether each captured value is in `constants` or in
    `strided`; it omits attributes. It contains ids of types, so it is valid only as long as these types exist.
    """
    numbers = dict[int, int]()
    key = list[object]()

    def add_use(value: SSAValue) -> None:
        if (number := numbers.get(id(value))) is None:
            # A captured value.
            numbers[id(value)] = number = len(numbers)
            key.extend((id(value.type), value in constants, value in strided))
        key.append(number)

    def add_def(value: SSAValue) -> None:
        numbers[id(value)] = len(numbers)
        key.append(id(value.type))

    def visit(current: Operation) -> None:
        operands = current._operands  # pyright: ignore[reportPrivateUsage]
        key.extend((name_of(current), len(operands), len(current.results), len(current.regions)))
        for operand in operands:
            add_use(operand)
        for result in current.results:
            add_def(result)
        for region in current.regions:
            for block in region.blocks:
                key.append(len(block.args))
                for argument in block.args:
                    add_def(argument)
                for inner in operations_in(block):
                    visit(inner)
                key.append(None)

    visit(op)
    return tuple(key)


@dataclass(frozen=True)
class NumberedGraph:
    """A graph, and the operations and values that its indices denote.

    `number`: the index of each value. `strided`: the values that are not stored in row-major order.
    """

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
) -> NumberedGraph:
    """Return the graph of a block whose operations run in the given order.

    Args:
        order: The order of the block's operations.
        phase: The phase of each operation; None if unknown.
        constants_outside: Values that the block captures and that depend only on constants.
        strided_outside: Values that the block captures and that are not stored in row-major order.
        bare: Whether to omit the fields that only planners read.
        costs: The recomputation costs that planners minimize; None for FLOPs.

    Raises:
        Refusal: A storage has an unknown size, or an operation has no cost.
    """
    constants = constants_only(order, constants_outside)
    shared = storages(order, strided_outside)
    operations, reads, facts = order.operations, order.reads, order.facts
    values = _values(order, reads)
    number = {value: index for index, value in enumerate(values)}
    # The keys are ids, because integers are several times as fast to look up as values.
    index = {id(value): index for index, value in enumerate(values)}
    results_of_op = [[index[id(result)] for result in op.results] for op in operations]
    pairs = list(zip(operations, facts, strict=True))
    inner = _InnerBytes(constants, shared)
    allocated = any([about is not None and about.allocated for about in facts])
    sizes = _sizes(values, constants, shared)
    graph = Graph(
        names=tuple(map(name_of, operations)),
        phases=tuple([phase[op] for op in operations]) if phase is not None else ("",) * len(operations),
        reads=tuple([tuple([index[id(value)] for value in read]) for read in reads]),
        makes=tuple(map(tuple, results_of_op)),
        flops=() if bare else tuple(map(flops, operations)),
        inner_bytes=tuple([inner.bytes_in(op) if op.regions else 0 for op in operations]),
        viewed=() if bare else tuple([_viewed_value(op, about, index) for op, about in pairs]),
        effects=() if bare else tuple([why_impure_by(op, about) for op, about in pairs]),
        maker=_makers(results_of_op, len(values)),
        root=_roots(index, values, shared),
        sizes=_with_storage_sizes(sizes, results_of_op, operations) if allocated else sizes,
        constants=frozenset([number[value] for value in constants if value in number]),
        literals=frozenset([i for i, about in enumerate(facts) if _is_literal(about)]),
        copies=frozenset() if bare else frozenset([i for i, op in enumerate(operations) if is_copy(op)]),
        costs=() if bare or costs in (None, FLOPS_OF_EACH) else costs(operations),
        counts_returned=allocated,
    )
    return NumberedGraph(graph, operations, values, number, shared.strided)


def _values(order: Order, reads: Sequence[Sequence[SSAValue]]) -> list[SSAValue]:
    """Return the values that the block reads from outside, then the results of its operations."""
    results = [result for op in order.operations for result in op.results]
    result_ids = set(map(id, results))
    outside = dict.fromkeys(
        [*order.block.args, *(value for read in reads for value in read if id(value) not in result_ids)]
    )
    return [*outside, *results]


def _makers(results_of_op: Sequence[Sequence[int]], values: int) -> tuple[int, ...]:
    maker = [NO_MAKER] * values
    for op, results in enumerate(results_of_op):
        for value in results:
            maker[value] = op
    return tuple(maker)


def _roots(index: Mapping[int, int], values: Sequence[SSAValue], shared: Storages) -> tuple[int, ...]:
    roots = list(range(len(values)))
    for value, root in shared.root.items():
        roots[index[id(value)]] = index[id(root)]
    return tuple(roots)


def _is_literal(facts: Facts | None) -> bool:
    # Nearly all operations have no classes; a lookup in the empty set would still hash `OpClass.CONSTANT`.
    return facts is not None and bool(facts.op_classes) and OpClass.CONSTANT in facts.op_classes


def _viewed_value(op: Operation, facts: Facts | None, index: Mapping[int, int]) -> int | None:
    """Return the index of the value that the operation converts or views; None for any other operation."""
    if facts is None or not (facts.op_classes or facts.view):
        return None
    value = op.operands[0] if is_cast(op) else viewed_operand(op)
    return None if value is None else index[id(value)]


def _sizes(values: Sequence[SSAValue], constants: Set[SSAValue], shared: Storages) -> tuple[int, ...]:
    """Return the bytes of each value.

    The size of arguments, views and constants is 0 if it is unknown.
    """
    sized_types = dict[int, tuple[Attribute, int]]()

    def size_of(value: SSAValue) -> int:
        if shared.lies_on_host(value):
            return 0
        type_ = value.type
        if (entry := sized_types.get(id(type_))) is not None:
            return entry[1]
        try:
            size = value_bytes(value)
        except Refusal:
            if isinstance(value.owner, Operation) and shared.owner(value) is value and value not in constants:
                raise
            return 0
        sized_types[id(type_)] = type_, size
        return size

    return tuple([size_of(value) for value in values])


def _with_storage_sizes(
    sizes: tuple[int, ...], results_of_op: Sequence[Sequence[int]], operations: Sequence[Operation]
) -> tuple[int, ...]:
    """Return the sizes, corrected for results whose storage is larger or smaller than the value."""
    corrected = list(sizes)
    for op, results in zip(operations, results_of_op, strict=True):
        if (size := stored_bytes(op)) is not None:
            for result in results:
                corrected[result] = size
    return tuple(corrected)


@dataclass(frozen=True)
class _InnerBytes:
    """Bytes inside regions, cached by `region_key`."""

    constants: Set[SSAValue]
    shared: Storages
    cache: dict[Key, int] = field(default_factory=dict[Key, int])

    def bytes_in(self, op: Operation) -> int:
        """Return the bytes inside the operation's regions."""
        if not region_storage(op):
            return 0
        key = region_key(op, self.constants, self.shared.strided)
        if (size := self.cache.get(key)) is None:
            size = self.cache[key] = inner_bytes(op, self.constants, self.shared)
        return size


def inner_bytes(op: Operation, constants: Set[SSAValue], shared: Storages) -> int:
    """Return the peak bytes of a loop's or branch's regions, beyond the bytes of its results.

    The results of a loop hold the carry of the running iteration: at the start, the initial values are copied into
    them. The values that an iteration yields are the next carry, and are live together with the current carry. The
    values that a branch yields become its results. The first region of `scf.while` has its own carry, whose types may
    differ; it is live until the region has yielded the values that become the results. The regions of a reduction have
    scalar arguments, and use no memory.
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
    """Return the peak bytes of a region's block.

    `hands_on`: the index of the first operand of the terminator that becomes a carry or a result. This operand and all
    later operands are live at the end of the block, together with the copies that are made to yield them.
    """
    order = Order.of(block)
    inside = graph_of(order, None, constants_outside, outside.strided, bare=True)
    alive = live_bytes(inside.graph, includes_returned=True)
    if hands_on is not None:
        alive[-1] += _yield_copies(inside, order.operations[-1].operands[hands_on:])
    return int(alive.max(initial=0))


def _yield_copies(inside: NumberedGraph, handed_on: Iterable[SSAValue]) -> int:
    """Return the bytes that the terminator must copy: arguments, views, constants, captured values, and repeated
    operands.

    A value whose storage the block allocates becomes the next carry or the result without a copy. Constants must be
    copied because they use no temporary memory, whereas a carry does.
    """
    graph, moved, copied = inside.graph, set[SSAValue](), 0
    for value in handed_on:
        number = inside.number[value]
        own = graph.root[number] == number and graph.maker[number] != NO_MAKER
        if own and value not in moved and number not in graph.constants:
            moved.add(value)
        else:
            copied += value_bytes(value)
    return copied
