"""How many bytes are alive at each operation of a step, in program order.

Model `order`: every result is stored, views share the storage of their operand, a storage is freed after its last
reader. Temporaries are what is neither an argument nor a result of the function; constants, and what is computed from
constants alone, cost nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ..dialects.recompute import Names
from ..rules.names import name_of
from ..rules.storage import carried_values, region_storage
from .constants import constants_only
from .functions import single_block
from .order import Order
from .phases import Phases
from .segments import find_segments
from .storage import Storages, storages, value_bytes


@dataclass(frozen=True)
class Buffer:
    """One storage, however many views it has. `first` and `last` are positions in program order, both inclusive."""

    label: str
    phase: str
    segment: str
    bytes: int
    first: int
    last: int
    recomputed: bool


@dataclass(frozen=True)
class Timeline:
    """`live_bytes[i]`: temporaries alive while operation i runs, `inner_bytes[i]` of its regions included."""

    operations: tuple[str, ...]
    phases: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    inner_bytes: tuple[int, ...]
    live_bytes: tuple[int, ...]
    argument_bytes: int
    result_bytes: int
    aliased_bytes: int

    @property
    def peak_bytes(self) -> int:
        return max(self.live_bytes, default=0)

    @property
    def peak_index(self) -> int:
        return self.live_bytes.index(self.peak_bytes) if self.live_bytes else 0

    @property
    def device_bytes(self) -> int:
        """Arguments, results and temporaries; a result in a donated argument's place counts once."""
        return self.argument_bytes + self.result_bytes + self.peak_bytes - self.aliased_bytes


def timeline(function: FuncOp, phases: Phases | None = None) -> Timeline:
    """The timeline of an inlined function of one block. Raises `Refusal` for dynamic shapes."""
    order = phases.order if phases is not None else Order.of(single_block(function))
    phase_of = phases.phase if phases is not None else dict[Operation, str]()
    terminator = order.operations[-1]
    constants = constants_only(order)
    shared = storages(order)
    spans = _spans(order, terminator.operands, constants, shared)
    inner = tuple(inner_bytes(op, constants, shared) for op in order.operations)
    segments = find_segments(phases, "auto") if phases is not None else dict[Operation, str]()
    buffers = tuple(_buffer(span, phase_of.get(span.operation, ""), segments.get(span.operation, "")) for span in spans)
    return Timeline(
        operations=tuple(name_of(op) for op in order.operations),
        phases=tuple(phase_of.get(op, "") for op in order.operations),
        buffers=buffers,
        inner_bytes=inner,
        live_bytes=live_bytes(len(order.operations), buffers, inner),
        argument_bytes=sum(value_bytes(argument) for argument in order.block.args),
        result_bytes=sum(value_bytes(value) for value in terminator.operands),
        aliased_bytes=aliased_bytes(function, order.block),
    )


def peaks_of_orders(*orders: Order) -> tuple[int, ...]:
    """For each of several orders of the same operations the `peak_bytes` of its timeline."""
    constants, shared = constants_only(orders[0]), storages(orders[0])
    returned = orders[0].operations[-1].operands
    inner = {op: inner_bytes(op, constants, shared) for op in orders[0].operations}
    return tuple(
        max(
            live_bytes(
                len(order.operations),
                _spans(order, returned, constants, shared),
                [inner[op] for op in order.operations],
            )
        )
        for order in orders
    )


@dataclass(frozen=True)
class _Span:
    """A storage that `operation` makes, and the positions of the first and the last operation that need it."""

    operation: Operation
    root: SSAValue
    first: int
    last: int

    @property
    def bytes(self) -> int:
        return value_bytes(self.root)


def _spans(order: Order, returned: Iterable[SSAValue], constants: Container[SSAValue], shared: Storages) -> list[_Span]:
    """The storages made in the block, without constants and what is `returned`."""
    not_counted = {shared.of(value) for value in returned}
    last = _last_positions(order, shared)
    return [
        _Span(op, result, index, max(index, last.get(result, index)))
        for index, op in enumerate(order.operations)
        for result in op.results
        if shared.of(result) is result and result not in constants and result not in not_counted
    ]


def _last_positions(order: Order, shared: Storages) -> dict[SSAValue, int]:
    """Position of the last operation that reads each storage, through any view."""
    last = dict[SSAValue, int]()
    for op in order.operations:
        for result in op.results:
            root = shared.of(result)
            positions = (order.position[reader] for reader in order.readers(result))
            last[root] = max(last.get(root, -1), max(positions, default=-1))
    return last


def _buffer(span: _Span, phase: str, segment: str) -> Buffer:
    stated = span.operation.attributes.get(Names.SEGMENT)
    return Buffer(
        label=name_of(span.operation),
        phase=phase,
        segment=stated.data if isinstance(stated, StringAttr) else segment,
        bytes=span.bytes,
        first=span.first,
        last=span.last,
        recomputed=Names.DUPLICATED in span.operation.attributes,
    )


def live_bytes(length: int, buffers: Iterable[Buffer | _Span], inner: Sequence[int]) -> tuple[int, ...]:
    """Bytes alive at each of `length` steps, those inside of the operation that runs there included."""
    change = [0] * (length + 1)
    for buffer in buffers:
        change[buffer.first] += buffer.bytes
        change[buffer.last + 1] -= buffer.bytes
    return tuple(alive + extra for alive, extra in zip(accumulate(change[:-1]), inner, strict=True))


def inner_bytes(op: Operation, constants: Set[SSAValue], shared: Storages) -> int:
    """What the regions of a loop or a branch hold at their peak beyond the results of the operation.

    The results of a loop stand for the carry of the running iteration: at the start the initial values are copied into
    them. What an iteration yields is the next carry, and is alive together with the running one. What a branch yields
    becomes the results. The first region of `scf.while` has a carry of its own, which may have other types: it is alive
    until the region has handed on what becomes the results. The regions of a reduction see scalars, and hold nothing.
    """
    if all(result in constants for result in op.results):
        return 0
    peaks = [
        _bytes(carried_values(op, stored)) + _block_peak(block, constants, shared, stored.hands_on)
        for stored, region in zip(region_storage(op), op.regions, strict=False)
        for block in region.blocks
    ]
    return max(peaks) - _bytes(op.results) if peaks else 0


def _bytes(values: Iterable[SSAValue]) -> int:
    return sum(value_bytes(value) for value in values)


def _block_peak(block: Block, constants_outside: Set[SSAValue], outside: Storages, hands_on: int | None) -> int:
    """Peak of a segment's block; what its terminator hands on, from that operand on, is counted, copies included."""
    order = Order.of(block)
    constants = constants_only(order, constants_outside)
    shared = storages(order, outside.strided)
    inner = [inner_bytes(op, constants, shared) for op in order.operations]
    if hands_on is not None:
        inner[-1] += _yield_copies(order, order.operations[-1].operands[hands_on:], constants, shared)
    return max(live_bytes(len(order.operations), _spans(order, (), constants, shared), inner), default=0)


def _yield_copies(order: Order, handed_on: Iterable[SSAValue], constants: Container[SSAValue], shared: Storages) -> int:
    """Bytes that the terminator must copy: arguments, views, what comes from outside, and what is yielded twice.

    What the block has stored itself becomes the next carry, or the result, as it is. Constants are no temporaries, but
    a carry is.
    """
    moved, copied = set[SSAValue](), 0
    for value in handed_on:
        if shared.of(value) is value and order.definition(value) >= 0 and value not in moved and value not in constants:
            moved.add(value)
        else:
            copied += value_bytes(value)
    return copied


def aliased_bytes(function: FuncOp, block: Block) -> int:
    """Bytes of the arguments in whose place a result is written (`tf.aliasing_output`)."""
    return sum(value_bytes(argument) for argument in block.args if _is_aliased(function, argument))


def _is_aliased(function: FuncOp, argument: BlockArgument) -> bool:
    if not isinstance(function.arg_attrs, ArrayAttr):
        return False
    return "tf.aliasing_output" in function.arg_attrs.data[argument.index].data
