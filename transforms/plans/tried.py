"""The attempts at a module as plans that travel: for whoever can measure what each of them needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count

from xdsl.dialects.builtin import ModuleOp

from ...analysis.copies.choose import choose
from ...analysis.memory.peaks import Forecast
from ...analysis.request.loop_schedule import Loops
from ...analysis.request.selection import AUTO, Selection
from ...planning.objective import ATTEMPTS
from ...planning.plan_file import StepPlan
from ..mark import write_marks
from ..phase import numbered_steps
from .carry_out import FOR_XLA, Emission
from .misfits import Misfits
from .notes import notes_of
from .prepared import prepare


@dataclass(frozen=True)
class TriedPlans:
    """`attempt`, in words, and a plan for each step. `peak_bytes`: what the model reckons, the largest of them."""

    attempt: str
    plans: tuple[StepPlan, ...]
    peak_bytes: int

    @property
    def copies(self) -> int:
        return sum(one.plan.copies for one in self.plans)


def tried_plans(
    module: ModuleOp,
    selection: Selection = AUTO,
    attempts: int = ATTEMPTS,
    copies: int = 2,
    emission: Emission = FOR_XLA,
    loops: Loops = True,
) -> Iterator[TriedPlans]:
    """What `recompute` would choose from. Where a step has fewer attempts than another, its last one stands again.

    Raises `Refusal` as `recompute` does.
    """
    for index in count():
        found, said, peaks = list[StepPlan](), dict[str, None](), list[int]()
        more, misfits = False, Misfits()
        for function, step in numbered_steps(prepare(module, selection, loops).module):
            forecast = Forecast.of(function, step, emission.is_ordered, emission.staggered)
            choice = misfits.fitted(function, partial(choose, step, selection, forecast, attempts, copies))
            if choice is None:
                continue
            tried = choice.tried
            more |= index < len(tried)
            one = tried[min(index, len(tried) - 1)]
            said[str(one.planned.attempt)] = None
            peaks.append(one.peaks.xla if emission.is_ordered else one.peaks.in_order)
            write_marks(one.planned.decided)
            notes = tuple(notes_of(step))
            found.append(StepPlan(function.sym_name.data, step.graph.fingerprint, one.planned.plan, notes))
        misfits.refuse()
        if not more:
            return
        yield TriedPlans("; ".join(said), tuple(found), max(peaks))
