"""Memory model `xla`: the temporaries of a step under XLA:CPU, with barriers kept.

Model `order` stores every result and runs in program order. XLA:CPU fuses, so that many results are never stored
(`fusion.py`), runs breadth first (`breadth_first.py`), copies some operands (`kernel_copies.py`, `donation.py`) and
puts several values in one buffer (`buffers.py`). The model has no fitted parameters: it simplifies XLA's passes. Its
accuracy is in `docs/memory.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ....planning.graph import OUTSIDE
from ...step.functions import single_block
from ...step.phases import Phases
from ..labels import Buffer, Labels
from ..timeline import Timeline, aliased_bytes
from .buffers import Life, outside_results
from .donation import donated_for, donations
from .form import xla_form
from .program import KernelProgram
from .run import ScheduledKernels, live_bytes


def xla_timeline(function: FuncOp, phases: Phases | None = None, labels: Labels | None = None) -> Timeline:
    """Live bytes over XLA's schedule, with one step per kernel. `labels`: for reports.

    Raises `Refusal` for dynamic shapes.
    """
    program, origin = xla_form(function, None if phases is None else phases.order)
    run = ScheduledKernels.of(program)
    labels = labels or Labels(phases)
    live = sorted(temporaries(donated_for(function), run), key=lambda life: life.first)
    inner = run.inner_bytes()
    return Timeline(
        operations=tuple([program.names[op] for op in run.schedule]),
        phases=tuple(["" if phases is None else phases.phase[origin[op]] for op in run.schedule]),
        buffers=tuple(_buffer(life, program, origin, labels) for life in live),
        inner_bytes=inner,
        live_bytes=live_bytes(live, inner),
        argument_bytes=sum(program.sizes[: program.arguments]),
        result_bytes=sum([program.sizes[value] for value in program.operands[program.terminator]]),
        aliased_bytes=aliased_bytes(function, single_block(function)),
    )


def temporaries(donated: Mapping[int, int], run: ScheduledKernels) -> list[Life]:
    """The lives outside of the places of arguments and results. `donated`: see `donations`."""
    places = {life.value: [life] for life in run.lives if life.value in run.returned}
    own_lives = run.temporaries()
    for donation in donations(donated, run):
        if donation.result in places:
            places[donation.result].append(donation.held)
        if donation.copy is not None:
            own_lives.append(donation.copy)
    return outside_results(own_lives, list(places.values()))


def _buffer(life: Life, program: KernelProgram, origin: Sequence[Operation], labels: Labels) -> Buffer:
    op = program.maker[life.value]
    if op == OUTSIDE:
        return Buffer("copy of a donated argument", "", "", life.bytes, life.first, life.last, False)
    return replace(labels.buffer(origin[op], life.bytes, life.first, life.last), label=program.names[op])
