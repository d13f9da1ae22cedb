"""List the attempts at a module as plans, for callers that apply all of them and measure the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from ...analysis.step.module_steps import numbered_steps
from ...analysis.step.step import Step
from ...options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from ...planning.plan_file import StepPlan
from ...transforms.plans.misfits import for_each_step
from ...transforms.plans.notes import notes_of
from ...transforms.plans.write_decisions import marked_attributes
from ..prepare import prepare
from .best_attempt import ScoredAttempt
from .choose import choose_for


@dataclass(frozen=True)
class ModuleAttempt:
    """An attempt at a module: one attempt at each of its steps.

    Attributes:
        attempt: A description of the attempts at the steps.
        plans: A plan for each step.
        peak_bytes: The largest forecast peak of the steps.
    """

    attempt: str
    plans: tuple[StepPlan, ...]
    peak_bytes: int

    @property
    def copies(self) -> int:
        """The number of copies in all plans."""
        return sum(plan.plan.copies for plan in self.plans)


def module_attempts(module: ModuleOp, options: RecomputeOptions = DEFAULT_OPTIONS) -> Iterator[ModuleAttempt]:
    """Yield the attempts that `recompute` compares without a budget, in order. A step with fewer attempts than another
    step repeats its last attempt.

    Raises:
        Refusal: In the same cases as `recompute`.
    """
    prepared = prepare(module, options)
    options = replace(options, selection=prepared.selection)
    steps = numbered_steps(prepared.module)
    choices = for_each_step(steps, partial(choose_for, options=options))
    per_step = [
        (function.sym_name.data, step, choices[function].tried) for function, step in steps if function in choices
    ]
    for index in range(max((len(attempts) for _, _, attempts in per_step), default=0)):
        scored = [(name, step, attempts[min(index, len(attempts) - 1)]) for name, step, attempts in per_step]
        words = "; ".join(dict.fromkeys(str(attempt.planned.attempt) for _, _, attempt in scored))
        peaks = [attempt.peaks.of_target(options.emission.keeps_barriers) for _, _, attempt in scored]
        yield ModuleAttempt(words, tuple(_step_plan(*attempt) for attempt in scored), max(peaks))


def _step_plan(name: str, step: Step, attempt: ScoredAttempt) -> StepPlan:
    notes = tuple(notes_of(step, marked_attributes(attempt.planned.decided)))
    return StepPlan(name, step.graph.fingerprint, attempt.planned.plan, notes)
