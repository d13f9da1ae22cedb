"""The result of a rewrite, as searches compare results: the new module, plans, remarks, and costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ModuleOp

from ..options.loop_schedule import LoopSchedule
from ..planning.host_moves import NOTHING_MOVED, Offload
from ..planning.plan import CopyGroup
from ..planning.plan_file import StepPlan
from ..support.diagnostics import Remark
from ..transforms.calls.restore import NOTHING_RESTORED, Restored
from ..transforms.clone import ClonedStep
from ..transforms.loops import NO_LOOP_RECOMPUTATION, LoopRecomputation
from ..transforms.offload import NO_MOVES, Moves


@dataclass(frozen=True)
class Recomputation:
    """The outcome of a rewrite.

    Attributes:
        steps: Each step with its plan.
        remarks: The choices, and the reasons for unchanged segments and steps.
        restored: The calls that were restored.
        rolled: The recomputation in loops.
        eager: The largest peak, in bytes, of an eager executor.
        offload: The options of offloading that the plans were made for.
        moves: The values that are moved to the host.
        waits: The time that the step waits for moves, beyond the time that plans were charged for them, in the unit of
            the cost.
        containing: For each step inside a loop, branch or per-device body the public function that contains it.
        runs: For each of these steps how often it runs in one run of that function; once if it is not listed.
        saving: The share of the peak that is saved under the model of XLA:CPU; None without a forecast for the module
            as a whole.
    """

    steps: tuple[ClonedStep, ...]
    remarks: tuple[Remark, ...]
    restored: Restored = NOTHING_RESTORED
    rolled: LoopRecomputation = NO_LOOP_RECOMPUTATION
    eager: int = 0
    offload: Offload = NOTHING_MOVED
    moves: Moves = NO_MOVES
    waits: int = 0
    containing: Mapping[str, str] = field(default_factory=dict[str, str])
    saving: float | None = None
    runs: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def groups(self) -> tuple[CopyGroup, ...]:
        """The copy groups, in the order of the backward pass of each step."""
        return tuple(group for step in self.steps for group in step.plan.groups)

    @property
    def copies(self) -> int:
        """The number of recomputed operations."""
        return sum(step.plan.copies for step in self.steps) + self.rolled.copies

    @property
    def recomputed(self) -> tuple[Remark, ...]:
        """A remark for each segment that is recomputed, for tools that print them on request."""
        remarks = [(self.containing.get(step.function, step.function), step.recomputed) for step in self.steps]
        return tuple(replace(remark, function=function) for function, some in remarks for remark in some)

    @property
    def extra_flops(self) -> int:
        """The FLOPs of the copies, those in loops over all iterations."""
        in_steps = sum(step.plan.extra_flops * self.runs.get(step.function, 1) for step in self.steps)
        return in_steps + self.rolled.extra_flops

    @property
    def plans(self) -> tuple[StepPlan, ...]:
        """The plans, in a form that a later run can apply (`planning/plan_file.py`)."""
        return tuple(replace(step.as_step_plan(), offload=self.offload) for step in self.steps)

    @property
    def extra_cost(self) -> int:
        """The cost beyond the cost of the plain step, in the unit that planners minimize; FLOPs by default."""
        return sum(step.plan.extra_cost(step.graph.cost) for step in self.steps) + self.rolled.extra_flops + self.waits

    @property
    def moved(self) -> int:
        """The number of values that are moved to the host."""
        return self.moves.values


@dataclass(frozen=True)
class Written:
    """The result of a rewrite without a budget.

    Attributes:
        module: The new module; None if the step stays unchanged.
        outcome: The outcome of the rewrite.
    """

    module: ModuleOp | None
    outcome: Recomputation


@dataclass(frozen=True)
class RewriteResult:
    """The result of a rewrite under a budget or without one.

    Attributes:
        module: The new module; None if the step stays unchanged.
        outcome: The outcome of the rewrite.
        loops: The loop schedule that the plans were made for.
        peaks: The peak of each function in bytes; empty if they were not measured.
        remarks: Remarks on the budget.
    """

    module: ModuleOp | None
    outcome: Recomputation
    loops: LoopSchedule
    peaks: Mapping[str, int] = field(default_factory=dict[str, int])
    remarks: tuple[Remark, ...] = ()
