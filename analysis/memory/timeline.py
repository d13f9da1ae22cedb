"""Live bytes at each operation of a step, in program order: the counts of `planning/liveness.py` with labels.

Model `order`: every result is stored, views share the storage of their operand, a storage is freed after its last
reader. Temporaries are the storages other than arguments and results of the function; constants, and values computed
from constants alone, cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...planning import liveness
from ..step.functions import single_block
from ..step.graph_of import graph_of
from ..step.order import Order
from ..step.phases import Phases
from ..step.storage import value_bytes
from .labels import Buffer, Labels


@dataclass(frozen=True)
class Timeline:
    """`live_bytes[i]`: bytes of live temporaries while operation i runs, including `inner_bytes[i]` of its regions."""

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
        """Bytes of arguments, results and temporaries; a result in the place of a donated argument counts once."""
        return self.argument_bytes + self.result_bytes + self.peak_bytes - self.aliased_bytes


def timeline(function: FuncOp, phases: Phases | None = None, labels: Labels | None = None) -> Timeline:
    """The timeline of an inlined function of one block, in the order of `phases`. `labels`: for reports.

    Raises `Refusal` for dynamic shapes.
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


def _buffers(values: Sequence[SSAValue], storages: liveness.StorageRanges, labels: Labels) -> Iterable[Buffer]:
    for number, size, first, last in storages.rows():
        owner = values[number].owner
        assert isinstance(owner, Operation), "temporaries are results of operations"
        yield labels.buffer(owner, size, first, last, values[number])


def aliased_bytes(function: FuncOp, block: Block) -> int:
    """Bytes of the arguments that are donated for a result (`tf.aliasing_output`)."""
    return sum(value_bytes(argument) for argument in block.args if _is_aliased(function, argument))


def _is_aliased(function: FuncOp, argument: BlockArgument) -> bool:
    if not isinstance(function.arg_attrs, ArrayAttr):
        return False
    return "tf.aliasing_output" in function.arg_attrs.data[argument.index].data
