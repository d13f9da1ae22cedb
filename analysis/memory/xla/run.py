"""A block as XLA:CPU runs it: its kernels, their order, and what each keeps alive, loops and branches included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from ....planning.evaluate import Storages, bytes_at_each_step
from ....rules.names import name_of
from ...step.constants import constants_only
from ...step.order import Order
from ...step.storage import value_bytes
from .breadth_first import breadth_first
from .buffers import Life, lives, returned_storages, written_in_place
from .fusion import Fusion, fusion

# Their regions run with memory of their own; the regions of a reduction see scalars.
LOOPS_AND_BRANCHES = frozenset({"stablehlo.while", "stablehlo.if", "stablehlo.case"})


@dataclass(frozen=True)
class Run:
    """`schedule` ends with the terminator; `needs` has the kernels that each kernel waits for.

    `returned` are the storages of what the block hands on.
    """

    fused: Fusion
    needs: Mapping[Operation, Set[Operation]]
    schedule: Sequence[Operation]
    lives: Sequence[Life]
    returned: Set[SSAValue]

    @classmethod
    def of(cls, block: Block) -> Run:
        order = Order.of(block)
        constants = constants_only(order)
        fused = fusion(order, constants)
        terminator = order.operations[-1]
        needs = {
            op: {value.owner for value in fused.reads[op] if isinstance(value.owner, Operation)} & fused.reads.keys()
            for op in fused.kernels
            if op is not terminator
        }
        schedule = [*breadth_first(needs), terminator]
        returned = returned_storages(fused, terminator, constants)
        return cls(fused, needs, schedule, lives(fused, schedule, constants), returned)

    def temporaries(self) -> list[Life]:
        """What the block stores and does not hand on."""
        in_place = written_in_place(self.lives, self.fused, self.schedule, self.returned)
        return [life for life in in_place if life.value not in self.returned]

    def inner_bytes(self) -> tuple[int, ...]:
        return tuple(map(_inner_bytes, self.schedule))

    def peak_bytes(self) -> int:
        return max(live_bytes(self.temporaries(), self.inner_bytes()))


def live_bytes(lives: Sequence[Life], inner: Sequence[int]) -> tuple[int, ...]:
    """Bytes alive at each step: of the lives, and inside of the operation that runs there."""
    rows = np.array([(0, life.bytes, life.first, life.last) for life in lives], np.int64).reshape(-1, 4)
    return tuple(bytes_at_each_step(Storages(*rows.T), np.array(inner, np.int64)).tolist())


def _inner_bytes(op: Operation) -> int:
    """What the regions of a loop or a branch hold; a loop also copies each carried value that an iteration changes."""
    if name_of(op) not in LOOPS_AND_BRANCHES:
        return 0
    peak = max(Run.of(block).peak_bytes() for region in op.regions for block in region.blocks)
    return peak + (_changed_bytes(op.regions[1].blocks[0]) if name_of(op) == "stablehlo.while" else 0)


def _changed_bytes(body: Block) -> int:
    assert body.last_op is not None, "a loop's body has a terminator"
    pairs = zip(body.args, body.last_op.operands, strict=True)
    return sum(value_bytes(argument) for argument, value in pairs if _updated(value) is not argument)


def _updated(value: SSAValue) -> SSAValue:
    """What is left when updates of a part, which are done in place, are looked through."""
    while isinstance(value.owner, Operation) and name_of(value.owner) == "stablehlo.dynamic_update_slice":
        value = value.owner.operands[0]
    return value
