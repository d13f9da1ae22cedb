"""The outcome of a rewrite, with the reasons for what was left unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from ..analysis.step.order import functions_of
from ..planning.host_moves import NOTHING_MOVED, Offload
from ..planning.plan import CopyGroup, Plan
from ..planning.plan_file import StepPlan
from ..support.diagnostics import Remark, Topic
from ..transforms.calls.restore import NOTHING_RESTORED, Restored
from ..transforms.clone import ClonedStep
from ..transforms.loops import NOTHING_ROLLED, Rolled
from ..transforms.offload import NO_MOVES, Moves
from ..transforms.phase import Steps
from .left_steps import step_left


@dataclass(frozen=True)
class Recomputation:
    """The outcome of a rewrite: the plan of each step, and remarks on what was left unchanged.

    eager: the largest peak (bytes) of an executor that starts operations as soon as it can. offload: the option that
    the plans were made for. moves: the values on the host. waits: the time that the step waits for moves, beyond what
    plans were charged for them. saving: the share of the peak that is saved under the model of XLA:CPU; None without a
    forecast for the module as a whole.
    """

    steps: tuple[ClonedStep, ...]
    remarks: tuple[Remark, ...]
    restored: Restored = NOTHING_RESTORED
    rolled: Rolled = NOTHING_ROLLED
    eager: int = 0
    offload: Offload = NOTHING_MOVED
    moves: Moves = NO_MOVES
    waits: int = 0
    saving: float | None = None

    @property
    def groups(self) -> tuple[CopyGroup, ...]:
        """The copy groups, in the order of the backward pass of each step."""
        return tuple(group for step in self.steps for group in step.plan.groups)

    @property
    def copies(self) -> int:
        return sum(step.plan.copies for step in self.steps) + self.rolled.copies

    @property
    def extra_flops(self) -> int:
        return sum(step.plan.extra_flops for step in self.steps) + self.rolled.extra_flops

    @property
    def plans(self) -> tuple[StepPlan, ...]:
        """The plans, which a later run can apply (`planning/plan_file.py`)."""
        return tuple(replace(step.as_step_plan(), offload=self.offload) for step in self.steps)

    @property
    def extra_cost(self) -> int:
        """The cost beyond that of the plain step, in the unit that planners minimize; FLOPs by default."""
        return sum(step.plan.extra_cost(step.graph.cost) for step in self.steps) + self.rolled.extra_flops + self.waits

    @property
    def moved(self) -> int:
        return self.moves.values


def unchanged(
    module: ModuleOp, remarks: Sequence[Remark], reason: str, steps: Steps, topic: Topic = Topic.STEP_LEFT
) -> Recomputation:
    """Make the outcome of a module that is left unchanged, with an empty plan for each step.

    `topic`: of the remark with the reason."""
    if not (remarks and remarks[-1].topic is Topic.STEP_LEFT):
        remarks = (*remarks, step_left(functions_of(module)[0], reason, topic))
    nothing = tuple(ClonedStep(function.sym_name.data, step.graph, Plan(), ()) for function, step in steps)
    return Recomputation(nothing, tuple(remarks))
