"""recompute-clone: copy the marked operations of each segment to where the gradient needs them.

    %1 = stablehlo.tanh %0 {recompute.recompute = true, recompute.segment = "block0"}
    ...
    %9 = stablehlo.multiply %ct, %1            // gradient

becomes

    %1 = stablehlo.tanh %0 {recompute.recompute = true, recompute.segment = "block0", recompute.id = 0}
    ...
    %t = recompute.token %ct
    %x = recompute.depend %0 after %t
    %c = stablehlo.tanh %x {recompute.copy = 1, recompute.duplicated, recompute.id = 0, recompute.segment = "block0"}
    %9 = stablehlo.multiply %ct, %c {recompute.target_grad}

Later gradient operations read `%x` in place of `%0` too: else the value and its delayed twin would both stay alive.
The dead originals are left to `recompute-cse`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ..analysis.copies.copying import DEFAULT, Copying
from ..analysis.copies.legality import refused
from ..analysis.copies.marked import kept_results, plan_of_marks, refused_marks, without_effect
from ..analysis.memory.peaks import Peaks
from ..analysis.step.marks import with_kept
from ..analysis.step.step import Step
from ..analysis.verify.emitted import wrong_reads
from ..dialects.context import demand_effect, tell
from ..dialects.discardable import verify_attributes
from ..dialects.recompute import Names
from ..options.recompute_options import Planner
from ..planning.check import unknown_operations, violations
from ..planning.graph import Graph
from ..planning.plan import CopyGroup, Plan
from ..planning.plan_file import Note, StepPlan
from ..planning.solvers.result import NoPlan
from ..rules.names import name_of
from ..rules.permission import NOTHING, Permission
from ..support.diagnostics import Refusal, Remark
from ..support.timing import part
from ..support.walk import every_operation
from .phase import Steps, numbered_steps
from .plans.apply_plan import Numbers, apply_plan
from .plans.nested_steps import nested_steps_apart
from .plans.notes import notes_of, write_notes


@dataclass(frozen=True)
class Done:
    """The plan of one function, the graph that it is for, and what is noted on its operations."""

    function: str
    graph: Graph
    plan: Plan
    notes: tuple[Note, ...]

    def as_step_plan(self) -> StepPlan:
        return StepPlan(self.function, self.graph.fingerprint, self.plan, self.notes)


@dataclass(frozen=True)
class Cloned:
    """What was done in each step, and a remark for each mark that had no effect.

    `before`: of the steps that may as well be left as they were, by function, the peaks that they had. `saving`: the
    share of the peak that is saved by the model of XLA:CPU, where it was forecast for the module as a whole.
    """

    steps: tuple[Done, ...]
    remarks: tuple[Remark, ...]
    before: Mapping[str, Peaks] = field(default_factory=dict[str, Peaks])
    saving: float | None = None

    @property
    def groups(self) -> tuple[CopyGroup, ...]:
        return tuple(group for done in self.steps for group in done.plan.groups)

    @property
    def copies(self) -> int:
        return sum(done.plan.copies for done in self.steps)


def clone(module: ModuleOp, how: Copying = DEFAULT, steps: Steps | None = None) -> Cloned:
    """Copy every marked value that the backward pass needs, behind a token for its copy group.

    `steps`: those of the module, where they are known already; here and below.
    """
    return clone_marked(
        module, steps or numbered_steps(module), lambda _, step: plan_of_marks(step, how), how.permission
    )


def clone_marked(
    module: ModuleOp, steps: Steps, plan_of: Callable[[FuncOp, Step], Plan], permission: Permission
) -> Cloned:
    """The same with what `plan_of` says that the marks of a step ask for."""
    done, remarks = list[Done](), list[Remark]()
    numbers = Numbers.free_in(module)
    for function, step in steps:
        remarks.extend(_refused(step, permission))
        plan = plan_of(function, step)
        remarks.extend(_without_effect(step, plan))
        done.append(_carry_out(function, step, plan, numbers))
    return Cloned(tuple(done), tuple(remarks))


def clone_as_planned(
    module: ModuleOp, planned: Sequence[StepPlan], permission: Permission = NOTHING, steps: Steps | None = None
) -> Cloned:
    """Carry out plans that were made for this very module. Raises `Refusal` where one does not fit."""
    plans, numbers = {one.function: one for one in planned}, Numbers.free_in(module)
    done = list[Done]()
    for function, step in steps or numbered_steps(module):
        name = function.sym_name.data
        if (one := plans.pop(name, None)) is None:
            raise Refusal(function, f"the plan has nothing for @{name}; it is for {', '.join(sorted(plans)) or 'none'}")
        if one.graph != step.graph.fingerprint:
            raise Refusal(function, f"the plan is for another program: @{name} is not the step that it was made for")
        _demand_fit(function, step, one.plan, permission)
        for wrong in unknown_operations(step.graph, one.notes):
            raise Refusal(function, f"the plan cannot be carried out: {wrong}")
        write_notes(step, one.notes)
        verify_attributes(every_operation(function))
        done.append(_carry_out(function, step, one.plan, numbers))
    if plans:
        raise Refusal(module, f"the plan is for another program: there is no step @{next(iter(plans))} here")
    return Cloned(tuple(done), ())


def clone_by(
    module: ModuleOp, planner: Planner, permission: Permission = NOTHING, steps: Steps | None = None
) -> Cloned:
    """Carry out what somebody's planner says of each step. Raises `Refusal` where a plan does not fit, and
    where there is none."""
    done, remarks, numbers = list[Done](), list[Remark](), Numbers.free_in(module)
    for function, step in steps or numbered_steps(module):
        with part("plan"):
            try:
                plan = planner(step.graph)
            except NoPlan as error:
                raise Refusal(function, str(error)) from error
        if not isinstance(plan, Plan):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Refusal(function, f"the planner gives a Plan for each step, not {type(plan).__name__}")
        _demand_fit(function, step, plan, permission)
        remarks.extend(without_effect(step, plan))
        done.append(_carry_out(function, step, plan, numbers))
    return Cloned(tuple(done), tuple(remarks))


@part("clone")
def _carry_out(function: FuncOp, step: Step, plan: Plan, numbers: Numbers) -> Done:
    done = Done(function.sym_name.data, step.graph, plan, tuple(notes_of(step)))
    apply_plan(step, plan, numbers)
    for op, wrong in wrong_reads(step, plan):
        raise Refusal(op, f"{name_of(op)} does not read what was planned: {wrong}")
    return done


def _demand_fit(function: FuncOp, step: Step, plan: Plan, permission: Permission) -> None:
    for wrong in violations(step.graph, plan, refused(step, permission)):
        raise Refusal(function, f"the plan cannot be carried out: {wrong}")


def _refused(step: Step, permission: Permission) -> Iterator[Remark]:
    """Marks on operations that must not run twice: said, and taken back."""
    for op, reason in list(refused_marks(step, permission)):
        del op.attributes[Names.RECOMPUTE]
        yield Remark(op, reason)


def _without_effect(step: Step, plan: Plan) -> Iterator[Remark]:
    """What stays although it was asked for; marks on results that stay, while another result is copied, go."""
    yield from without_effect(step, plan)
    for op, index, reason in list(kept_results(step, plan)):
        op.attributes[Names.RECOMPUTE] = with_kept(op, [op.results[index]])
        yield Remark(op, f"result {index} of {name_of(op)} is kept: {reason}")


@dataclass(frozen=True)
class ClonePass(ModulePass):
    """Copy marked operations into the backward pass, behind dependency tokens.

    copies: at most so many copies of one operation; with 2 the outputs of a segment may come before its inside.
    chain: each copy group also waits for the gradient operation before it.
    collectives: collectives may be repeated, on all devices alike, with channels of their own.
    preserve_rng_state: unseeded random operations are never repeated; if false they may draw again, other numbers.
    strict: a mark that has no effect is an error.
    """

    name = "recompute-clone"

    copies: int = 2
    chain: bool = False
    collectives: bool = False
    preserve_rng_state: bool = True
    strict: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        how = Copying(self.copies, self.chain, permission=Permission(self.collectives, self.preserve_rng_state))
        with nested_steps_apart(op):
            tell(ctx, demand_effect(clone(op, how).remarks, self.strict))
