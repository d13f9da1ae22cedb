"""Families of plans in order of decreasing work. A search finds the plan with the least work within a memory limit.

Within a family, the extra work falls from plan to plan, and the predicted memory need nearly always rises. Therefore a
binary search finds the fitting plan with the least work, and only the plans that the search visits are made and
forecast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...planning.plan import Plan
from ...planning.plan_file import OperationNote
from ...planning.solvers.result import Stop
from .plan_origin import PlanOrigin

NEARLY_FITTING_FACTOR = 1.2
"""If the need of a plan is at most this multiple of the limit, the next plan of the family may fit, because needs do
not rise steadily within a family."""
LESS_WORK_NEXT = 0.0
"""The judgement on a plan without a forecast: the search continues with plans of less work, as after a plan that
fits."""


@dataclass(frozen=True)
class UnscoredPlan:
    """A plan without a forecast.

    Attributes:
        origin: The source of the plan.
        plan: The plan.
        notes: The attributes of operations under the plan.
        segments: The segment name of each operation in a recomputed segment. If an operation of these segments could
            run early, a barrier may delay it.
    """

    origin: PlanOrigin
    plan: Plan
    notes: tuple[OperationNote, ...]
    segments: Mapping[int, str]


@dataclass
class PlanFamily:
    """Plans in order of decreasing work. Each plan is made when it is first visited.

    Attributes:
        makers: Functions that make one plan each, or return None if the plan cannot be made. A function returns early
            once `stop` is true.
        made: The plans that were made, by index.
    """

    makers: Sequence[Callable[[Stop], UnscoredPlan | None]]
    made: dict[int, UnscoredPlan | None] = field(default_factory=dict[int, UnscoredPlan | None])

    def search(self, judge: Callable[[UnscoredPlan | None], float], stop: Stop, stride: int = 0) -> None:
        """Find the fitting plan with the least work. A binary search is followed by visits to the plans after its
        result.

        Args:
            judge: A function that returns the need of a plan as a multiple of the limit, or `LESS_WORK_NEXT` to
                continue with plans of less work. If a plan cannot be made, the argument is None and the result is
                `LESS_WORK_NEXT`, because such a plan would have one of the lowest needs.
            stop: A predicate that ends the search.
            stride: Visit every `stride`-th plan first, because needs do not rise steadily; 0 for only the binary
                search.
        """
        low, high = 0, len(self.makers)
        if stride:
            grid = range(0, len(self.makers), stride)
            low = 1 + max((at for at in grid if not stop() and judge(self.plan_at(at, stop)) <= 1), default=-1)
            high = min(high, low - 1 + stride)
        while low < high and not stop():
            middle = (low + high) // 2
            if judge(self.plan_at(middle, stop)) <= 1:
                low = middle + 1
            else:
                high = middle
        while low < len(self.makers) and not stop() and judge(self.plan_at(low, stop)) <= NEARLY_FITTING_FACTOR:
            low += 1

    def visit_all(self, judge: Callable[[UnscoredPlan | None], float], stop: Stop) -> None:
        """Judge every plan of the family, until `stop` is true."""
        for index in range(len(self.makers)):
            if stop():
                return
            judge(self.plan_at(index, stop))

    def plan_at(self, index: int, stop: Stop) -> UnscoredPlan | None:
        """Return the plan at this index, and make it if necessary. If `stop` becomes true while the plan is made, the
        plan is not stored."""
        if index in self.made:
            return self.made[index]
        plan = self.makers[index](stop)
        if not stop():
            self.made[index] = plan
        return plan
