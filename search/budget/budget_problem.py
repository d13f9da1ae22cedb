"""A step to be rewritten within a budget: its limits, and the rewrites that are measured against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from xdsl.dialects.builtin import ModuleOp

from ...options.loop_schedule import LoopSchedule
from ...options.recompute_options import Planner, RecomputeOptions
from ...planning.objective import EAGER_SHARE
from ...planning.plan_file import StepPlan
from ...planning.solvers.result import Stop
from ...transforms.preparation.timelines import flat, timelines_of
from ..prepare import drop_dead
from .limits import Budget, BudgetLimits


class RewriteResult(Protocol):
    """The result of a rewrite. `eager`: the largest peak (bytes) of an executor that starts operations as soon as it
    can. `moved`: the number of values on the host. `extra_cost`: the cost that planners minimize."""

    @property
    def plans(self) -> tuple[StepPlan, ...]: ...
    @property
    def extra_flops(self) -> int: ...
    @property
    def extra_cost(self) -> int: ...
    @property
    def moved(self) -> int: ...
    @property
    def copies(self) -> int: ...
    @property
    def eager(self) -> int: ...


O = TypeVar("O", bound=RewriteResult)  # noqa: E741
RunRewrite = Callable[[Sequence[StepPlan] | Planner | None, LoopSchedule], tuple[ModuleOp | None, O]]
"""Rewrites the module by plans, by a planner, or as without a budget: the new module, or None if it is unchanged, and
the outcome."""


@dataclass(frozen=True)
class Evaluated(Generic[O]):
    """A rewrite, with the peaks in bytes of its functions. `module`: None if the step stays unchanged."""

    module: ModuleOp | None
    outcome: O
    peaks: Mapping[str, int]
    loops: LoopSchedule


@dataclass(frozen=True)
class BudgetProblem(Generic[O]):
    """A module, its budget as text and in bytes, and the function that rewrites it.

    `stop`: ends the search with the best result so far."""

    module: ModuleOp
    budget: Budget
    run: RunRewrite[O]
    limits: BudgetLimits
    options: RecomputeOptions
    stop: Stop

    def evaluate(self, planned: Sequence[StepPlan] | Planner | None, loops: LoopSchedule | None = None) -> Evaluated[O]:
        """Rewrite the module, and measure the peaks of the result in bytes. `loops`: None for the option's schedule."""
        loops = loops or self.options.loop_schedule
        module, outcome = self.run(planned, loops)
        peaks = {
            name: timeline.peak_bytes
            for name, timeline in timelines_of(module or self.module, self.budget.model)
            if name
        }
        return Evaluated(module, outcome, peaks, loops)

    def living(self, result: Evaluated[O]) -> Mapping[str, int]:
        """Return the peaks without dead code, which a rewrite drops and plans do not contain."""
        if result.module is not None:
            return result.peaks
        module = flat(self.module)
        drop_dead(module)
        return {name: timeline.peak_bytes for name, timeline in timelines_of(module, self.budget.model)}

    def is_kept(self, result: Evaluated[O]) -> bool:
        return self.limits.bytes is not None and self.limits.over(result.peaks) <= 0

    def eager_excess(self, result: Evaluated[O]) -> int:
        """Return the bytes above the budget for an executor that starts operations as soon as it can; 0 if tokens do
        not order it."""
        if not self.options.emission.is_ordered or self.limits.bytes is None:
            return 0
        return int(result.outcome.eager / EAGER_SHARE) - max(self.limits.bytes.values(), default=0)

    @property
    def wording(self) -> str:
        if self.limits.bytes is None:
            return f"{self.budget.text}"
        return f"of {self.budget.text} ({', '.join(map(str, self.limits.bytes.values()))} bytes of temporaries)"
