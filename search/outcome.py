"""The result of a rewrite: the new module, the applied plans, and their cost. Searches compare rewrites by this
result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp

from ..analysis.forecasts.peaks import PeakChange
from ..options.loop_schedule import LoopSchedule
from ..planning.host_moves import NO_MOVES, NOTHING_MOVED, Moves, Offload
from ..planning.plan_file import StepPlan
from ..support.remarks import Remark
from ..transforms.calls.restore import NOTHING_RESTORED, Restored
from ..transforms.plans.cloned_steps import Cloned
from ..transforms.rolled.rewrite_loops import NO_LOOP_RECOMPUTATION, LoopRecomputation


@dataclass(frozen=True)
class Recomputation(Cloned):
    """The recomputation that a rewrite adds: the copies in its steps and loops, their cost, and remarks on all stages.
    It does not contain the module.

    Attributes:
        restored_calls: The calls that were restored.
        in_loops: The recomputation in loops.
        eager_peak_bytes: The largest peak of any step under an eager executor.
        offload: The options of offloading with which the plans were made.
        moves: The values that are moved to the host.
        wait_cost: The time that the step waits for moves, minus the time that plans were charged for them, in the unit
            of the cost.
        containing_functions: For each step inside a loop, branch or per-device body, the enclosing public function.
        run_counts: For each step in `containing_functions`, the number of its executions in one run of this function; 1
            for steps without an entry.
        saved_share: The share by which the peak falls under the XLA:CPU model; None if there is no forecast for the
            module as a whole.
        peak_changes: The peaks of each function before and after the rewrite; empty under a budget, whose remark gives
            the peaks, and for modules with steps inside loops, branches or per-device bodies.
    """

    restored_calls: Restored = NOTHING_RESTORED
    in_loops: LoopRecomputation = NO_LOOP_RECOMPUTATION
    eager_peak_bytes: int = 0
    offload: Offload = NOTHING_MOVED
    moves: Moves = NO_MOVES
    wait_cost: int = 0
    containing_functions: Mapping[str, str] = field(default_factory=dict[str, str])
    saved_share: float | None = None
    run_counts: Mapping[str, int] = field(default_factory=dict[str, int])
    peak_changes: Mapping[str, PeakChange] = field(default_factory=dict[str, PeakChange])

    @property
    @override
    def copies(self) -> int:
        """The number of recomputed operations, in steps and in loops."""
        return super().copies + self.in_loops.copies

    @property
    @override
    def recomputed(self) -> tuple[Remark, ...]:
        """A remark for each segment that is recomputed, located in the public function that contains its step."""
        return tuple(
            replace(remark, function=self.containing_functions.get(step.function, step.function))
            for step in self.steps
            for remark in step.recomputed
        )

    @property
    def extra_flops(self) -> int:
        """The FLOPs of the copies. The FLOPs of copies in loops are summed over all iterations."""
        in_steps = sum(step.plan.extra_flops * self.run_counts.get(step.function, 1) for step in self.steps)
        return in_steps + self.in_loops.extra_flops

    @property
    def plans(self) -> tuple[StepPlan, ...]:
        """The plans of all steps, in a form that a later run can apply (`planning/plan_file.py`)."""
        return tuple(replace(step.as_step_plan(), offload=self.offload) for step in self.steps)

    @property
    def extra_cost(self) -> int:
        """The cost of the rewritten step minus the cost of the plain step, in the unit that planners minimize; FLOPs by
        default."""
        in_steps = sum(step.plan.extra_cost(step.graph.cost) for step in self.steps)
        return in_steps + self.in_loops.extra_flops + self.wait_cost

    @property
    def plain_cost(self) -> int:
        """The cost of the plain steps, in the unit that planners minimize. Each step is counted once."""
        return sum(sum(step.graph.cost) for step in self.steps)


@dataclass(frozen=True)
class RewriteResult:
    """A rewritten module, with the data by which searches compare rewrites.

    Attributes:
        module: The new module; None if the step stays unchanged.
        outcome: The recomputation in the module.
        loops: The loop schedule with which the plans were made.
        peaks: The peak of each function in bytes; empty outside a budget search.
    """

    module: ModuleOp | None
    outcome: Recomputation
    loops: LoopSchedule
    peaks: Mapping[str, int] = field(default_factory=dict[str, int])

    def with_remarks(self, *remarks: Remark) -> RewriteResult:
        """Return the result with these remarks appended to its own remarks."""
        return replace(self, outcome=replace(self.outcome, remarks=(*self.outcome.remarks, *remarks)))
