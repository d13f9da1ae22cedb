"""Breadth-first schedule of a block's kernels, as in XLA:CPU, and the live bytes at each of its steps.

Kernels run in the order in which they become ready, first in, first out, so that several threads are busy
(`xla/service/hlo_memory_scheduler.cc`, `BFScheduler`). Therefore, kernels that depend only on arguments run first: the
random bits of all layers, for example, are computed before the first layer.

A result is written into the memory of the argument that is donated for it. If the result does not depend on a kernel
that reads the argument, this kernel might run after the result is written. It therefore reads a copy of the argument
that is made at the start, and the argument's memory can hold temporaries until the result is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.dialects.func import FuncOp

from ....planning.liveness import StorageRanges, bytes_at_each_step
from ....planning.orders import ReadyTracker
from .buffer_assignment import Life, copied_bytes, lives, returned_storages, storage_owners, write_in_place
from .kernel_copies import with_kernel_copies
from .kernel_fusion import Fusion, fusion
from .program import KernelProgram

_TUPLED = frozenset({"stablehlo.optimization_barrier", "recompute.depend", "stablehlo.while"})
"""The operations whose operands XLA packs into a tuple, and unpacks again."""
_TUPLE_STEPS = 2
"""Number of additional steps of these operations: one for packing, one for unpacking."""


def breadth_first(needs: Mapping[int, Set[int]], names: Sequence[str]) -> Sequence[int]:
    """Return the keys of `needs` in topological order. Keys are returned in the order in which they become ready. Keys
    that are ready at the start keep their order."""
    ready = ReadyTracker(needs)
    queue = deque((op, _steps(names[op])) for op in ready.at_start())
    schedule = list[int]()
    while queue:
        op, steps = queue.popleft()
        if steps:
            queue.append((op, steps - 1))
        else:
            schedule.append(op)
            queue.extend((reader, _steps(names[reader])) for reader in ready.complete(op))
    return schedule


def _steps(name: str) -> int:
    return _TUPLE_STEPS if name in _TUPLED else 0


@dataclass(frozen=True)
class ScheduledKernels:
    """The schedule of a block's kernels.

    Attributes:
        fused: The kernels.
        needs: The kernels on which each kernel depends.
        schedule: The kernels in the order in which they run; the terminator is last.
        lives: The live ranges of stored values.
        returned: The storages of the values that the block returns.
    """

    fused: Fusion
    needs: Mapping[int, Set[int]]
    schedule: Sequence[int]
    lives: Sequence[Life]
    returned: Set[int]

    @classmethod
    def of(cls, program: KernelProgram) -> ScheduledKernels:
        """Fuse and schedule the operations of a program."""
        fused = fusion(program)
        needs = {
            op: {program.maker[value] for value in fused.reads[op]} & fused.reads.keys()
            for op in fused.kernels
            if op != program.terminator
        }
        schedule = [*breadth_first(needs, program.names), program.terminator]
        owners = storage_owners(fused)
        return cls(fused, needs, schedule, lives(fused, schedule, owners), returned_storages(fused, owners))

    @property
    def program(self) -> KernelProgram:
        return self.fused.program

    def temporaries(self) -> list[Life]:
        """Return the live ranges of the storages that the block does not return."""
        in_place = write_in_place(self.lives, self.fused, self.schedule, self.returned)
        return [life for life in in_place if life.value not in self.returned]

    def inner_bytes(self) -> tuple[int, ...]:
        """Return, for each kernel, the peak bytes of its regions. The bytes of a loop include the copies of carried
        values."""
        program, peaks = self.program, dict[int, int]()
        for op, bodies in program.bodies.items():
            # Structurally equal operations share one object for their bodies.
            if id(bodies) not in peaks:
                runs = [ScheduledKernels.of(with_kernel_copies(body).program) for body in bodies]
                copied = [copied_bytes(run.fused) if op in program.handed_on else 0 for run in runs]
                peaks[id(bodies)] = max([run.peak_bytes() + size for run, size in zip(runs, copied, strict=True)])
        inner = {op: peaks[id(bodies)] for op, bodies in program.bodies.items()}
        return tuple([inner.get(op, 0) for op in self.schedule])

    def peak_bytes(self) -> int:
        return max(live_bytes(self.temporaries(), self.inner_bytes()))


def live_bytes(lives: Sequence[Life], inner: Sequence[int]) -> tuple[int, ...]:
    """Return the live bytes at each step: the bytes of the live ranges plus the bytes inside regions."""
    rows = np.array([(life.value, life.bytes, life.first, life.last) for life in lives], np.int64).reshape(-1, 4)
    return tuple(bytes_at_each_step(StorageRanges(*rows.T), np.array(inner, np.int64)).tolist())


@dataclass(frozen=True)
class DonatedArgument:
    """A donated argument into whose memory a result is written.

    Attributes:
        result: The result that is written into the argument's memory.
        held: The live range of the argument's own memory; empty if kernels read the copy instead.
        copy: The live range of the argument's copy; None if no copy is needed.
    """

    result: int
    held: Life
    copy: Life | None


def donated_for(function: FuncOp) -> Mapping[int, int]:
    """Map each argument with the attribute `tf.aliasing_output` to the index of the result for which it is donated."""
    if not isinstance(function.arg_attrs, ArrayAttr):
        return {}
    targets = ((index, entry.data.get("tf.aliasing_output")) for index, entry in enumerate(function.arg_attrs.data))
    return {argument: target.value.data for argument, target in targets if isinstance(target, IntegerAttr)}


def donations(donated: Mapping[int, int], run: ScheduledKernels) -> Iterator[DonatedArgument]:
    """Yield the donations of a block.

    `donated`: for each donated argument, the index of the result for which it is donated.
    """
    if not donated:
        return
    readers = _readers(run)
    needed = _dependencies(run)
    returned = run.program.returned
    for argument, number in donated.items():
        result = returned[number]
        before = needed.get(run.program.maker[result], 0)
        yield _donation(argument, result, run, readers.get(argument, []), before)


def _donation(
    argument: int, result: int, run: ScheduledKernels, readers: Sequence[int], before: int
) -> DonatedArgument:
    """Return the live ranges of a donated argument and of its copy.

    Args:
        argument, result: The donated argument, and the result that is written into its memory.
        run: The schedule.
        readers: The schedule positions that read the argument.
        before: The result's schedule position and the positions on which it depends, as a bit set.
    """
    size = run.program.sizes[argument]
    alive = Life(argument, size, 0, max(readers, default=0))
    if all(before >> index & 1 for index in readers):
        return DonatedArgument(result, alive, None)
    return DonatedArgument(result, Life(argument, size, -1, -1), alive)


def _readers(run: ScheduledKernels) -> dict[int, list[int]]:
    """Return, for each value, the schedule positions at which it is read."""
    readers = dict[int, list[int]]()
    for index, op in enumerate(run.schedule):
        for value in run.fused.reads[op]:
            readers.setdefault(value, []).append(index)
    return readers


def _dependencies(run: ScheduledKernels) -> dict[int, int]:
    """Return, for each kernel, a bit set of the schedule positions of the kernel and of every kernel on which it
    depends."""
    needed = dict[int, int]()
    for index, op in enumerate(run.schedule):
        needed[op] = 1 << index
        for other in run.needs.get(op, ()):
            needed[op] |= needed[other]
    return needed
