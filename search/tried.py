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
from .choose import ScoredAttempt, choose
from .prepare import prepare


@dataclass(frozen=True)
class AttemptPlans:
    """`attempt`: the segmentation in words, with a plan for each step. `peak_bytes`: the largest forecast peak."""

    attempt: str
    plans: tuple[StepPlan, ...]
    peak_bytes: int

    @property
    def copies(self) -> int:
        return sum(plan.plan.copies for plan in self.plans)


def attempt_plans(module: ModuleOp, options: RecomputeOptions = DEFAULT) -> Iterator[AttemptPlans]:
    """The candidates of `recompute`, in their order. Where a step has fewer than another, its last one is repeated.

    Raises `Refusal` as `recompute` does.
    """
    emission, misfits = options.emission, Misfits()
    per_step = list[tuple[str, Step, tuple[ScoredAttempt, ...]]]()
    prepared = prepare(module, options)
    for function, step in numbered_steps(prepared.module):
        forecast = Forecast.of(function, step, emission.is_ordered, emission.staggered)
        chosen = partial(choose, step, prepared.selection, forecast, options.attempts, options.copies)
        choice = misfits.fitted(function, chosen)
        if choice is not None:
            per_step.append((function.sym_name.data, step, tuple(choice.tried)))
    misfits.refuse()
    for index in range(max((len(attempts) for _, _, attempts in per_step), default=0)):
        scored = [(name, step, attempts[min(index, len(attempts) - 1)]) for name, step, attempts in per_step]
        words = "; ".join(dict.fromkeys(str(attempt.planned.attempt) for _, _, attempt in scored))
        peaks = [attempt.peaks.xla if emission.is_ordered else attempt.peaks.in_order for _, _, attempt in scored]
        yield AttemptPlans(words, tuple(_step_plan(*attempt) for attempt in scored), max(peaks))


def _step_plan(name: str, step: Step, attempt: ScoredAttempt) -> StepPlan:
    """The plan with the notes of its marks; the step is left without them."""
    plain = tuple(notes_of(step))
    write_marks(attempt.planned.decided)
    notes = tuple(notes_of(step))
    write_notes(step, plain)
    return StepPlan(name, step.graph.fingerprint, attempt.planned.plan, notes)
