"""Candidates of a module as plans that travel: for a caller who can measure the bytes that each of them needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from ..analysis.memory.peaks import Forecast
from ..analysis.step.step import Step
from ..options.recompute_options import DEFAULT, RecomputeOptions
from ..planning.plan_file import StepPlan
from ..transforms.mark import write_marks
from ..transforms.phase import numbered_steps
from ..transforms.plans.misfits import Misfits
from ..transforms.plans.notes import notes_of, write_notes
from .choose import Tried, choose
from .prepare import prepare


@dataclass(frozen=True)
class TriedPlans:
    """`attempt`: the segmentation in words, with a plan for each step. `peak_bytes`: the largest forecast peak."""

    attempt: str
    plans: tuple[StepPlan, ...]
    peak_bytes: int

    @property
    def copies(self) -> int:
        return sum(plan.plan.copies for plan in self.plans)


def tried_plans(module: ModuleOp, options: RecomputeOptions = DEFAULT) -> Iterator[TriedPlans]:
    """The candidates of `recompute`, in their order. Where a step has fewer than another, its last one is repeated.

    Raises `Refusal` as `recompute` does.
    """
    emission, misfits = options.emission, Misfits()
    found = list[tuple[str, Step, tuple[Tried, ...]]]()
    prepared = prepare(module, options)
    for function, step in numbered_steps(prepared.module):
        forecast = Forecast.of(function, step, emission.is_ordered, emission.staggered)
        chosen = partial(choose, step, prepared.selection, forecast, options.attempts, options.copies)
        choice = misfits.fitted(function, chosen)
        if choice is not None:
            found.append((function.sym_name.data, step, tuple(choice.tried)))
    misfits.refuse()
    for index in range(max((len(tried) for _, _, tried in found), default=0)):
        ones = [(name, step, tried[min(index, len(tried) - 1)]) for name, step, tried in found]
        words = "; ".join(dict.fromkeys(str(one.planned.attempt) for _, _, one in ones))
        peaks = [one.peaks.xla if emission.is_ordered else one.peaks.in_order for _, _, one in ones]
        yield TriedPlans(words, tuple(_step_plan(*one) for one in ones), max(peaks))


def _step_plan(name: str, step: Step, tried: Tried) -> StepPlan:
    """The plan with the notes of its marks; the step is left without them."""
    plain = tuple(notes_of(step))
    write_marks(tried.planned.decided)
    notes = tuple(notes_of(step))
    write_notes(step, plain)
    return StepPlan(name, step.graph.fingerprint, tried.planned.plan, notes)
