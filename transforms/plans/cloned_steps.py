"""Apply a plan to one step, verify the result, and record what was applied."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.func import FuncOp

from ...analysis.step.step import Step
from ...analysis.verify.emitted import wrong_reads
from ...planning.graph import Graph
from ...planning.plan import CopyGroup, Plan
from ...planning.plan_file import OperationNote, StepPlan
from ...support.diagnostics import Refusal
from ...support.operations import name_of
from ...support.remarks import Remark
from ...support.timing import part
from .apply_plan import FreeNumbers, apply_plan
from .notes import notes_of
from .recomputed_remarks import recomputed_remarks


@dataclass(frozen=True)
class ClonedStep:
    """The plan that was applied to one function.

    Attributes:
        function: The symbol of the function.
        graph: The graph of the function before copies were inserted.
        plan: The plan.
        notes: The marks and segments of the function's operations, for a plan file.
        recomputed: A remark for each segment that is recomputed.
    """

    function: str
    graph: Graph
    plan: Plan
    notes: tuple[OperationNote, ...]
    recomputed: tuple[Remark, ...] = ()

    def as_step_plan(self) -> StepPlan:
        """Return the entry of the plan file for this function."""
        return StepPlan(self.function, self.graph.fingerprint, self.plan, self.notes)


@dataclass(frozen=True)
class Cloned:
    """The result of applying plans to a module.

    Attributes:
        steps: The applied plan of each step.
        remarks: A remark for each mark without effect.
    """

    steps: tuple[ClonedStep, ...]
    remarks: tuple[Remark, ...]

    @property
    def groups(self) -> tuple[CopyGroup, ...]:
        return tuple(group for step in self.steps for group in step.plan.groups)

    @property
    def copies(self) -> int:
        return sum(step.plan.copies for step in self.steps)

    @property
    def recomputed(self) -> tuple[Remark, ...]:
        """A remark for each segment that is recomputed."""
        return tuple(remark for step in self.steps for remark in step.recomputed)


@part("clone")
def clone_step(function: FuncOp, step: Step, plan: Plan, numbers: FreeNumbers) -> ClonedStep:
    """Apply a plan to a step, and verify that each operation reads the value that the plan prescribes."""
    name = function.sym_name.data
    recomputed = tuple([replace(remark, function=name) for remark in recomputed_remarks(step, plan)])
    record = ClonedStep(name, step.graph, plan, tuple(notes_of(step)), recomputed)
    apply_plan(step, plan, numbers)
    for op, difference in wrong_reads(step, plan):
        raise Refusal(op, f"{name_of(op)} does not read the value that the plan prescribes: {difference}")
    return record
