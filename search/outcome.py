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
from .carry_out import step_left


@dataclass(frozen=True)
class Recomputation:
    """What was done: the plan of each step, and the reasons for what was left alone. `eager`: the peak of an executor
    that starts operations as soon as it can, the largest of what was written.
    `offload`: what the plans are for, `moves`: what lies on the host.
    `waits`: what the work waits for moves, beyond what plans were charged for them. `saving`: the share of the peak
    that is saved by the model of XLA:CPU, where it was forecast for the module as a whole."""

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
        """In the order of the backward pass of each step."""
        return tuple(group for step in self.steps for group in step.plan.groups)

    @property
    def copies(self) -> int:
        return sum(step.plan.copies for step in self.steps) + self.rolled.copies

    @property
    def extra_flops(self) -> int:
        return sum(step.plan.extra_flops for step in self.steps) + self.rolled.extra_flops

    @property
    def plans(self) -> tuple[StepPlan, ...]:
        """What the next run can carry out; see `planning/plan_file.py`."""
        return tuple(replace(step.as_step_plan(), offload=self.offload) for step in self.steps)

    @property
    def extra_cost(self) -> int:
        """What planners keep low, beyond the plain step's; FLOPs where nothing else was asked for."""
        return sum(step.plan.extra_cost(step.graph.cost) for step in self.steps) + self.rolled.extra_flops + self.waits

    @property
    def moved(self) -> int:
        return self.moves.values


def unchanged(module: ModuleOp, remarks: Sequence[Remark], reason: str, steps: Steps) -> Recomputation:
    """Nothing is done, which is a plan too."""
    if not (remarks and remarks[-1].topic is Topic.STEP_LEFT):
        remarks = (*remarks, step_left(functions_of(module)[0], reason))
    nothing = tuple(ClonedStep(function.sym_name.data, step.graph, Plan(), ()) for function, step in steps)
    return Recomputation(nothing, tuple(remarks))
