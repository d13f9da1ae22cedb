"""The execution of a block by XLA:CPU: its kernels, their schedule and live ranges, with loops and branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from ....planning.liveness import StorageRanges, bytes_at_each_step
from .breadth_first import breadth_first
from .buffers import Life, lives, returned_storages, written_in_place
from .carried import copied_bytes
from .fusion import Fusion, fusion
from .kernel_copies import with_kernel_copies
from .program import KernelProgram


@dataclass(frozen=True)
class ScheduledKernels:
    """The kernels of a block, scheduled.

    needs: the kernels that each kernel depends on.
    schedule: the kernels in order; the terminator is last.
    lives: the live ranges of stored values.
    returned: the storages of the values that the block returns.
    """

    fused: Fusion
    needs: Mapping[int, Set[int]]
    schedule: Sequence[int]
    lives: Sequence[Life]
    returned: Set[int]

    @classmethod
    def of(cls, program: KernelProgram) -> ScheduledKernels:
        fused = fusion(program)
        needs = {
            op: {program.maker[value] for value in fused.reads[op]} & fused.reads.keys()
            for op in fused.kernels
            if op != program.terminator
        }
        schedule = [*breadth_first(needs, program.names), program.terminator]
        return cls(fused, needs, schedule, lives(fused, schedule), returned_storages(fused))

    @property
    def program(self) -> KernelProgram:
        return self.fused.program

    def temporaries(self) -> list[Life]:
        """The live ranges of the storages that the block does not return."""
        in_place = written_in_place(self.lives, self.fused, self.schedule, self.returned)
        return [life for life in in_place if life.value not in self.returned]

    def inner_bytes(self) -> tuple[int, ...]:
        """For each step the bytes inside of its regions; for a loop including copies of carried values."""
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
    """Live bytes at each step, counted as in every other model: the sum of the lives and the inner bytes."""
    rows = np.array([(life.value, life.bytes, life.first, life.last) for life in lives], np.int64).reshape(-1, 4)
    return tuple(bytes_at_each_step(StorageRanges(*rows.T), np.array(inner, np.int64)).tolist())
