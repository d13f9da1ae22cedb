"""A module to rewrite within a budget, with its limits, and with methods that run and measure rewrites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...analysis.step.order import functions_of
from ...dialects.dead_code import has_dead_code
from ...options.loop_schedule import LoopSchedule
from ...options.recompute_options import Planner, RecomputeOptions
from ...planning.objective import MAX_EAGER_FACTOR
from ...planning.plan_file import StepPlan
from ...planning.solvers.result import Stop
from ...support.units import is_share
from ...transforms.preparation.flatten import drop_dead
from ...transforms.preparation.timelines import flat_copy, is_flat, peaks_of
from ..limits import Budget, BudgetLimits
from ..outcome import RewriteResult

RunRewrite = Callable[[Sequence[StepPlan] | Planner | None, LoopSchedule], RewriteResult]
"""A function that rewrites the module with a loop schedule. It applies the given plans or runs the given planner; for
None, it chooses as without a budget."""


@dataclass(frozen=True, kw_only=True)
class BudgetProblem:
    """A module, its budget, and the function that rewrites it.

    Attributes:
        module: The module, which stays unchanged.
        budget: The budget as the user gives it.
        run: The function that rewrites the module.
        limits: The budget in bytes.
        options: The options of the rewrite.
        stop: A predicate that ends the search with the best result so far.
    """

    module: ModuleOp
    budget: Budget
    run: RunRewrite
    limits: BudgetLimits
    options: RecomputeOptions
    stop: Stop

    @property
    def report_location(self) -> Operation:
        """The operation at which remarks and refusals are reported: the first function of the module."""
        return next(iter(functions_of(self.module)), self.module)

    def evaluate(
        self, planned: Sequence[StepPlan] | Planner | None, loops: LoopSchedule | None = None
    ) -> RewriteResult:
        """Rewrite the module, and measure the peaks of the result in bytes. `loops`: the loop schedule; None for the
        schedule of the options."""
        loops = loops or self.options.loop_schedule
        result = self.run(planned, loops)
        named = peaks_of(result.module or self.module, self.budget.model)
        return replace(result, peaks={name: peak for name, peak in named.items() if name})

    def live_peaks(self, result: RewriteResult) -> Mapping[str, int]:
        """Return the peaks of a result in bytes. If the step is unchanged, its dead code is not counted, because every
        rewrite removes dead code."""
        if result.module is not None:
            return result.peaks
        module = flat_copy(self.module)
        drop_dead(module)
        return peaks_of(module, self.budget.model)

    @cached_property
    def is_single_step(self) -> bool:
        """Whether the module is a single flat function without dead code, and no segment has a budget. In this case,
        preparing the module changes nothing."""
        if self.options.selection.segment_budgets or not is_flat(self.module):
            return False
        return not has_dead_code(functions_of(self.module)[0])

    def is_within_budget(self, result: RewriteResult) -> bool:
        """Return whether the peaks of a result are within the budget; false for the budget `min`."""
        return self.limits.limit_bytes is not None and self.limits.excess_bytes(result.peaks) <= 0

    def eager_excess(self, result: RewriteResult) -> int:
        """Divide the peak of an eager executor by `MAX_EAGER_FACTOR`, and return the number of bytes by which the
        quotient exceeds the budget. The result is 0 for the target `none`, because its executors run in program
        order."""
        if not self.options.emission.keeps_barriers or self.limits.limit_bytes is None:
            return 0
        return int(result.outcome.eager_peak_bytes / MAX_EAGER_FACTOR) - max(
            self.limits.limit_bytes.values(), default=0
        )

    @property
    def wording(self) -> str:
        """The budget as a phrase for messages."""
        if self.limits.limit_bytes is None:
            return f"{self.budget.text}"
        return f"of {self.budget.text} ({self.limits.wording})"

    @property
    def counted_values(self) -> str:
        """The clause of a refusal that tells whether the budget includes arguments and results."""
        if is_share(self.budget.text):
            return "a share counts temporaries only, without arguments and results"
        return "a budget in bytes includes arguments and results"

    @property
    def refused_wording(self) -> str:
        """The phrase of a refusal that states the budget, the temporaries of the plain step, and the memory model."""
        limits = "" if self.limits.limit_bytes is None else f" ({self.limits.wording_with_plain})"
        return f"of {self.budget.text}{limits} {self.budget.model_phrase}"
