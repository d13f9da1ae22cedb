"""A block as XLA:CPU runs it: its kernels, their order, and what each keeps alive, loops and branches included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from ....planning.evaluate import Storages, bytes_at_each_step
from .breadth_first import breadth_first
from .buffers import Life, lives, returned_storages, written_in_place
from .carried import copied_bytes
from .fusion import Fusion, fusion
from .kernel_copies import with_kernel_copies
from .program import Program


@dataclass(frozen=True)
class Run:
    """`schedule` ends with the terminator; `needs` has the kernels that each kernel waits for.

    `returned` are the storages of what the block hands on.
    """

    fused: Fusion
    needs: Mapping[int, Set[int]]
    schedule: Sequence[int]
    lives: Sequence[Life]
    returned: Set[int]

    @classmethod
    def of(cls, program: Program) -> Run:
        fused = fusion(program)
        needs = {
            op: {program.maker[value] for value in fused.reads[op]} & fused.reads.keys()
            for op in fused.kernels
            if op != program.terminator
        }
        schedule = [*breadth_first(needs, program.names), program.terminator]
        return cls(fused, needs, schedule, lives(fused, schedule), returned_storages(fused))

    @property
    def program(self) -> Program:
        return self.fused.program

    def temporaries(self) -> list[Life]:
        """What the block stores and does not hand on."""
        in_place = written_in_place(self.lives, self.fused, self.schedule, self.returned)
        return [life for life in in_place if life.value not in self.returned]

    def inner_bytes(self) -> tuple[int, ...]:
        """For each step what the regions of a loop or a branch need; a loop also copies of what it carries."""
        program, peaks = self.program, dict[int, int]()
        for op, bodies in program.bodies.items():
            # Of operations that are alike the bodies are the same.
            if id(bodies) not in peaks:
                runs = [Run.of(with_kernel_copies(body).program) for body in bodies]
                copied = [copied_bytes(run.fused) if op in program.handed_on else 0 for run in runs]
                peaks[id(bodies)] = max([run.peak_bytes() + more for run, more in zip(runs, copied, strict=True)])
        inner = {op: peaks[id(bodies)] for op, bodies in program.bodies.items()}
        return tuple([inner.get(op, 0) for op in self.schedule])

    def peak_bytes(self) -> int:
        return max(live_bytes(self.temporaries(), self.inner_bytes()))


def live_bytes(lives: Sequence[Life], inner: Sequence[int]) -> tuple[int, ...]:
    """Bytes alive at each step, counted as in every other model: of the lives, and inside of what runs there."""
    rows = np.array([(life.value, life.bytes, life.first, life.last) for life in lives], np.int64).reshape(-1, 4)
    return tuple(bytes_at_each_step(Storages(*rows.T), np.array(inner, np.int64)).tolist())
