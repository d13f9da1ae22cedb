"""Timelines of live bytes: the memory at each operation of a step, with a label for each buffer.

Bytes are counted as in `planning/liveness.py`, according to the memory model `order`: every result is stored, views
share the storage of their operand, and a storage is freed after its last reader. Temporaries are all storages except
the arguments and results of the function. Constants, and values computed only from constants, use no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects.names import Names
from ...planning import liveness
from ...planning.orders import eager_order
from ...support.live_bytes import index_of_largest, largest
from ...support.operations import name_of
from ..request.segments import find_segments
from ..step.descriptions import module_of, source_of, type_text, value_name
from ..step.graph_of import graph_of
from ..step.order import Order, single_block
from ..step.phases import Phases
from ..step.step import Step
from ..step.views import value_bytes


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """One storage with all of its views.

    Attributes:
        label: The name of the operation that computes the stored value.
        phase, segment: The phase and the segment of this operation.
        bytes: The size of the storage.
        first, last: The live range, as positions in the schedule, both inclusive.
        recomputed: Whether the operation is a copy.
        name, source: The name and the source position of the value, from `value_name` and `source_of`.
        module, type: The module and the type of the value, from `module_of` and `type_text`; "" if unknown.
    """

    label: str
    phase: str
    segment: str
    bytes: int
    first: int
    last: int
    recomputed: bool
    name: str = ""
    source: str = ""
    module: str = ""
    type: str = ""


@dataclass(frozen=True)
class Labels:
    """The phases and segments that label buffers.

    `segments`: the segments of the operations without a segment attribute.
    """

    phases: Phases | None = None
    segments: Mapping[Operation, str] = field(default_factory=dict[Operation, str])

    @classmethod
    def of(cls, phases: Phases | None) -> Labels:
        """Return labels with the segments that the option `segments=auto` finds."""
        return cls(phases, {} if phases is None else dict(find_segments(phases, "auto")))

    def buffer(self, op: Operation, size: int, first: int, last: int, value: SSAValue | None = None) -> Buffer:
        """Return the labelled buffer of a storage that the operation allocates.

        Args:
            op: The operation.
            size: The size in bytes.
            first, last: The live range.
            value: The result that the storage holds, if known.
        """
        return Buffer(
            label=name_of(op),
            phase="" if self.phases is None else self.phases.phase[op],
            segment=self.segment_of(op),
            bytes=size,
            first=first,
            last=last,
            recomputed=Names.DUPLICATED in op.attributes,
            name=value_name(op, value),
            source=source_of(op),
            module=module_of(op),
            type=type_text(value or op.results[0]) if op.results else "",
        )

    def segment_of(self, op: Operation) -> str:
        """Return the segment from the operation's attribute, or else from `segments`; "" outside segments."""
        stated = op.attributes.get(Names.SEGMENT)
        return stated.data if isinstance(stated, StringAttr) else self.segments.get(op, "")


@dataclass(frozen=True)
class Timeline:
    """Live bytes over the operations of a function.

    Attributes:
        operations, phases: The name and the phase of each operation, in the order of the schedule.
        buffers: All temporaries.
        inner_bytes: For each operation, the peak bytes inside its regions.
        live_bytes: For each operation, the bytes of temporaries that are live while it runs, including `inner_bytes`.
        argument_bytes, result_bytes: Bytes of the function's arguments and results.
        aliased_bytes: Bytes of the donated arguments whose memory the results reuse.
        in_results: Values that share a result's buffer until the result is written. They are not part of `live_bytes`.
        in_loops: Copies that the bodies of loops store. The bytes of each copy are summed over all iterations; its live
            range is not meaningful. `inner_bytes` includes their bytes within one iteration.
    """

    operations: tuple[str, ...]
    phases: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    inner_bytes: tuple[int, ...]
    live_bytes: tuple[int, ...]
    argument_bytes: int
    result_bytes: int
    aliased_bytes: int
    in_results: tuple[Buffer, ...] = ()
    in_loops: tuple[Buffer, ...] = ()

    @property
    def peak_bytes(self) -> int:
        return largest(self.live_bytes)

    @property
    def peak_index(self) -> int:
        return index_of_largest(self.live_bytes)

    @property
    def device_bytes(self) -> int:
        """Peak bytes on the device for arguments, results and temporaries. Memory that a donated argument shares with a
        result is counted once."""
        return self.argument_bytes + self.result_bytes + self.peak_bytes - self.aliased_bytes


def timeline(function: FuncOp, phases: Phases | None = None, labels: Labels | None = None) -> Timeline:
    """Return the timeline of an inlined function of one block.

    Args:
        function: The function.
        phases: The phases of its operations; the timeline follows their order.
        labels: The labels for reports; by default, labels with the phase but no segment.

    Raises:
        Refusal: The function has dynamic shapes.
    """
    order = phases.order if phases is not None else Order.of(single_block(function))
    numbered = graph_of(order, phases.phase if phases is not None else None)
    graph = numbered.graph
    return Timeline(
        operations=graph.names,
        phases=graph.phases,
        buffers=tuple(_buffers(numbered.values, liveness.storages(graph), labels or Labels(phases))),
        inner_bytes=graph.inner_bytes,
        live_bytes=tuple(liveness.live_bytes(graph).tolist()),
        argument_bytes=sum(map(value_bytes, order.block.args)),
        result_bytes=0 if graph.counts_returned else sum(map(value_bytes, order.operations[-1].operands)),
        aliased_bytes=aliased_bytes(function, order.block),
    )


def peak_in_order(function: FuncOp) -> int:
    """Return the peak of the function's `timeline` in bytes. No buffer labels are computed, because they would take
    most of the time.

    Raises `Refusal` for dynamic shapes.
    """
    return liveness.peak_bytes(graph_of(Order.of(single_block(function)), bare=True).graph)


def _buffers(values: Sequence[SSAValue], storages: liveness.StorageRanges, labels: Labels) -> Iterable[Buffer]:
    for number, size, first, last in storages.rows():
        owner = values[number].owner
        assert isinstance(owner, Operation), "temporaries are results of operations"
        yield labels.buffer(owner, size, first, last, values[number])


def aliased_bytes(function: FuncOp, block: Block) -> int:
    """Return the bytes of the arguments that are donated for a result (attribute `tf.aliasing_output`)."""
    return sum(value_bytes(argument) for argument in block.args if _is_aliased(function, argument))


def _is_aliased(function: FuncOp, argument: BlockArgument) -> bool:
    if not isinstance(function.arg_attrs, ArrayAttr):
        return False
    return "tf.aliasing_output" in function.arg_attrs.data[argument.index].data


def eager(phases: Phases) -> Phases:
    """Return `phases` with the operations in the order of the eager schedule."""

    step = Step.of(phases)
    operations = step.numbered.operations_of(eager_order(step.graph))
    return Phases(Order.from_operations(phases.order.block, operations), phases.phase)


def eager_timeline(function: FuncOp, phases: Phases) -> Timeline:
    """Return the timeline of the eager schedule."""
    return timeline(function, eager(phases))
