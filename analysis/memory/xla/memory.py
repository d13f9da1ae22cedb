"""Memory model `xla`: the temporaries of a step as XLA:CPU has them, with barriers kept.

Model `order` stores every result and runs in program order. XLA:CPU fuses, so that many results are never stored
(`fusion.py`), runs breadth first (`breadth_first.py`), copies some operands (`form.py`, `donation.py`) and puts
several values in one place (`buffers.py`). Nothing here is fitted: it is what XLA's passes do, simplified. How near
it comes is in `docs/limits.md`.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ....rules.names import name_of
from ...step.phases import Phases
from ...step.storage import value_bytes
from ..timeline import Buffer, Labels, Timeline, aliased_bytes
from .buffers import Life, outside_results
from .donation import donations
from .form import XlaForm, xla_form
from .run import Run, live_bytes


def xla_timeline(function: FuncOp, phases: Phases | None = None) -> Timeline:
    """Live bytes over XLA's schedule, a step for each kernel. Raises `Refusal` for dynamic shapes."""
    form = xla_form(function)
    run = Run.of(form.block)
    phase_of = {op: phases.phase[origin] for op, origin in form.origin.items()} if phases is not None else {}
    labels = Labels.of(phases)
    alive = sorted(_temporaries(form, run), key=lambda life: life.first)
    inner = run.inner_bytes()
    return Timeline(
        operations=tuple(name_of(op) for op in run.schedule),
        phases=tuple(phase_of.get(op, "") for op in run.schedule),
        buffers=tuple(_buffer(life, form, labels) for life in alive),
        inner_bytes=inner,
        live_bytes=live_bytes(alive, inner),
        argument_bytes=sum(value_bytes(argument) for argument in form.block.args),
        result_bytes=sum(value_bytes(value) for value in run.schedule[-1].operands),
        aliased_bytes=aliased_bytes(form.function, form.block),
    )


def _temporaries(form: XlaForm, run: Run) -> list[Life]:
    """What lies neither in an argument's nor in a result's place."""
    places = {life.value: [life] for life in run.lives if life.value in run.returned}
    temporaries = run.temporaries()
    for donation in donations(form.function, run):
        if donation.result in places:
            places[donation.result].append(donation.held)
        if donation.copy is not None:
            temporaries.append(donation.copy)
    return outside_results(temporaries, list(places.values()))


def _buffer(life: Life, form: XlaForm, labels: Labels) -> Buffer:
    op = life.value.owner
    if not isinstance(op, Operation):
        return Buffer("copy of a donated argument", "", "", life.bytes, life.first, life.last, False)
    return replace(labels.buffer(form.origin[op], life.bytes, life.first, life.last), label=name_of(op))
