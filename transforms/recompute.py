"""recompute: the whole way, from a training step as a framework lowers it to the same step in less memory.

inline (functions, gradient regions, segments) -> mark (with the phases) -> clone -> cse -> verify -> lower -> stagger
-> calls come back (`transforms/calls`)

A step with gradient regions comes back with gradient regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..analysis.copies.copying import Copying
from ..analysis.memory.peaks import Peaks, why_worse
from ..analysis.request.selection import AUTO, Selection
from ..analysis.step.copied import is_copy
from ..analysis.step.functions import functions_of
from ..analysis.step.marks import is_forced
from ..dialects.context import RecomputeContext, tell
from ..dialects.diagnostics import Refusal, Remark
from ..dialects.every import every_operation
from ..dialects.stopwatch import part
from ..planning.plan import CopyGroup, Plan
from ..planning.plan_file import StepPlan, to_json
from ..rules.permission import Permission
from .calls.origins import Origins
from .calls.restore import NOTHING_RESTORED, Restored, restore_calls
from .clone import Cloned, Done, Planner, clone, clone_as_planned, clone_by
from .cse import cse
from .lower import TARGETS, lower
from .mark import MarkPass, mark_steps
from .outline_gradient import outline_gradient
from .phase import Steps, numbered_steps
from .plans.prepared import prepare
from .plans.read_plan import read_plan
from .stagger import stagger
from .verify import verify, verify_input


@dataclass(frozen=True)
class Recomputation:
    """What was done: the plan of each step, and the reasons for what was left alone."""

    steps: tuple[Done, ...]
    remarks: tuple[Remark, ...]
    restored: Restored = NOTHING_RESTORED

    @property
    def groups(self) -> tuple[CopyGroup, ...]:
        """In the order of the backward pass of each step."""
        return tuple(group for done in self.steps for group in done.plan.groups)

    @property
    def copies(self) -> int:
        return sum(done.plan.copies for done in self.steps)

    @property
    def extra_flops(self) -> int:
        return sum(done.plan.extra_flops for done in self.steps)

    @property
    def plans(self) -> tuple[StepPlan, ...]:
        """What the next run can carry out; see `planning/plan_file.py`."""
        return tuple(done.as_step_plan() for done in self.steps)


@dataclass(frozen=True)
class Emission:
    """For whom the step is written: the target of `recompute-lower`, whether `recompute-stagger` runs behind it, and
    whether functions are called again."""

    target: str
    staggered: bool
    calls: bool

    @property
    def is_ordered(self) -> bool:
        """Whether the result says what waits for what. If not, program order is all that holds the copies back."""
        return self.target != "none"


@dataclass(frozen=True)
class Attempt:
    """A module with copies as it would be written, and its peaks."""

    module: ModuleOp
    cloned: Cloned
    peaks: Peaks
    origins: Origins


def recompute(
    module: ModuleOp,
    selection: Selection = AUTO,
    copies: int = 2,
    target: str = "stablehlo",
    staggered: bool = True,
    planned: Sequence[StepPlan] | Planner | None = None,
    calls: bool = True,
) -> Recomputation:
    """Recompute what is selected of every step in the module, in place; or what is `planned`, by an earlier run or by a
    planner of one's own. `calls`: functions that were inlined to decide are called again where that is possible.

    The module stays as it is, and a remark says why, when it has been recomputed already, when nothing can be
    recomputed, and when the policy's choice does not lower the peak.

    Raises `Refusal` for marks that say nothing, when there is no gradient, no such segment, when a plan does not fit,
    or when the result breaks an invariant.
    """
    with part("verify"):
        verify_input(module)
    prepared = prepare(module, selection)
    work, selection = prepared.module, prepared.selection
    operations = every_operation(work)
    if any(map(is_copy, operations)):
        return _unchanged(module, [], "the step has copies already, from an earlier run", ())
    emission = Emission(target, staggered, calls)
    forced = planned is not None or any(map(is_forced, operations))
    steps = numbered_steps(work)
    # From here on `work` is changed in place.
    before = Peaks.of(work, steps).kept(lambda: prepare(module, selection).module, emission.is_ordered and not forced)
    how = Copying(copies, False, selection.collectives, selection.preserve_rng_state)
    if planned is None:
        remarks = [*prepared.remarks, *mark_steps(steps, selection)]
        cloned = clone(work, how, steps)
    else:
        remarks = list[Remark]()
        cloned = _carried_out(work, planned, selection.permission, steps)
    if not cloned.copies:
        return _unchanged(module, [*remarks, *cloned.remarks], "nothing is recomputed", steps)
    best = _emitted(work, prepared.origins, cloned, emission, steps)
    if planned is None and emission.is_ordered and not best.peaks.is_steady:
        best = min(best, _chained(module, selection, how, emission), key=lambda attempt: attempt.peaks.eager)
    remarks += best.cloned.remarks
    if not forced and (reason := why_worse(before, best.peaks, emission.is_ordered)) is not None:
        return _unchanged(module, remarks, reason, steps)
    if planned is not None and (reason := why_worse(before, best.peaks, emission.is_ordered)) is not None:
        remarks.append(Remark(functions_of(module)[0], f"{reason}: the plan is carried out all the same"))
    with part("calls"):
        restored = restore_calls(best.module, module, best.origins) if calls else NOTHING_RESTORED
    if prepared.structured:
        outline_gradient(best.module)
    _replace(module, best.module)
    return Recomputation(best.cloned.steps, tuple(remarks), restored)


def _carried_out(
    module: ModuleOp, planned: Sequence[StepPlan] | Planner, permission: Permission, steps: Steps
) -> Cloned:
    if callable(planned):
        return clone_by(module, planned, permission, steps)
    return clone_as_planned(module, planned, permission, steps)


def _chained(module: ModuleOp, selection: Selection, how: Copying, emission: Emission) -> Attempt:
    """One token for each copy group may leave too much ready at once: here each group waits for the one before it."""
    prepared = prepare(module, selection)
    work = prepared.module
    steps = numbered_steps(work)
    mark_steps(steps, selection)
    cloned = clone(work, replace(how, chain=True), steps)
    return _emitted(work, prepared.origins, cloned, emission, steps)


def _emitted(work: ModuleOp, origins: Origins, cloned: Cloned, emission: Emission, before: Steps) -> Attempt:
    """The module, which has its copies and tokens, as it is written, but for calls. `before`: its steps before that."""
    known = {function: step.phases for function, step in before}
    with part("cse"):
        if emission.calls:
            origins.follow_copies(work)
            cse(work, known, origins.instance_of)
        else:
            cse(work, known)
    if not emission.is_ordered:
        # While the tokens are there: program order is all that is left of them.
        with part("verify"):
            verify(work)
    with part("lower"):
        lower(work, emission.target)
    if emission.staggered and emission.target == "stablehlo":
        with part("stagger"):
            stagger(work, known=known)
    steps = numbered_steps(work, bare=True)
    with part("verify"):
        if emission.is_ordered:
            verify(work, steps)
        else:
            verify_input(work)
    return Attempt(work, cloned, Peaks.of(work, steps), origins)


def _unchanged(module: ModuleOp, remarks: Sequence[Remark], reason: str, steps: Steps) -> Recomputation:
    """Nothing is done, which is a plan too."""
    said = Remark(functions_of(module)[0], f"{reason}: the step is left as it is")
    nothing = tuple(Done(function.sym_name.data, step.graph, Plan(), ()) for function, step in steps)
    return Recomputation(nothing, (*remarks, said))


def _replace(module: ModuleOp, work: ModuleOp) -> None:
    """Give the module the content of `work`."""
    for op in list(module.ops):
        op.detach()
        op.erase()
    for op in list(work.ops):
        op.detach()
        module.body.block.add_op(op)


@dataclass(frozen=True)
class RecomputePass(MarkPass):
    """Recompute segments of a training step: inline, mark, clone, clean up, verify, lower.

    What is recomputed is said as in recompute-mark.

    copies: at most so many copies of one operation, as in recompute-clone.
    target: `stablehlo` or `none`, as in recompute-lower.
    stagger: hold the forward pass back too, as in recompute-stagger.
    calls: functions in which nothing was changed are called again, and so are whole copies; else all stays inlined.
    plan: a file that an earlier run wrote (`recompute-opt --emit-plan`), or somebody else; it replaces the policy.
    strict: a step that stays as it is is an error.
    """

    name = "recompute"

    copies: int = 2
    target: str = "stablehlo"
    stagger: bool = True
    calls: bool = True
    plan: str = ""
    strict: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.target not in TARGETS:
            raise Refusal(op, f"unknown target '{self.target}'; known are {', '.join(TARGETS)}")
        planned = read_plan(op, self.plan) if self.plan else None
        done = recompute(op, self, self.copies, self.target, self.stagger, planned, self.calls)
        if self.strict and not done.copies:
            raise Refusal(op, f"{done.remarks[-1].reason} (strict)")
        tell(ctx, done.remarks)
        if isinstance(ctx, RecomputeContext):
            ctx.plans.append(to_json(done.plans))
