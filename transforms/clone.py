"""recompute-clone: copy the marked operations of each segment to the place where the gradient reads their results.

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

Later gradient operations also read `%x` instead of `%0`; otherwise both the original value and the delayed value would
be live. `recompute-cse` removes dead originals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ..analysis.copies.copying import (
    DEFAULT_COPYING,
    CloneOptions,
    ineffective_marks,
    marked_results_kept,
    plan_of_marks,
    refused_marks,
    unrepeatable_operations,
)
from ..analysis.step.descriptions import describe_briefly
from ..analysis.step.marks import with_kept
from ..analysis.step.module_steps import numbered_steps
from ..analysis.step.step import Step, Steps
from ..analysis.verify.emitted import wrong_reads
from ..dialects.discardable import verify_attributes
from ..dialects.names import Names
from ..options.recompute_options import Planner
from ..planning.by_segment.copy_groups import GroupOptions
from ..planning.check import unknown_operations, violations
from ..planning.graph import Graph
from ..planning.plan import CopyGroup, Plan
from ..planning.plan_file import OperationNote, StepPlan
from ..planning.solvers.result import NoPlan
from ..rules.effects import NO_PERMISSION, Permission
from ..support.counted import counted
from ..support.diagnostics import Refusal, Remark, Topic, demand_effect, tell
from ..support.operations import every_operation, name_of
from ..support.timing import part
from .outlining.nested_steps import outline_temporarily
from .plans.apply_plan import FreeNumbers, apply_plan
from .plans.notes import notes_of, write_notes
from .plans.recomputed_remarks import recomputed_remarks


@dataclass(frozen=True)
class ClonedStep:
    """The plan that was applied to one function.

    Attributes:
        function: The symbol of the function.
        graph: The graph of the function before copies were inserted.
        plan: The plan.
        notes: The marks and segments of its operations, for a plan file.
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


NOT_MARKED = (
    f"nothing is copied: no operation has the mark {Names.RECOMPUTE}; run recompute-mark, recompute-plan or "
    "recompute-offload before recompute-clone"
)


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


def clone(module: ModuleOp, copying: CloneOptions = DEFAULT_COPYING, steps: Steps | None = None) -> Cloned:
    """Copy the marked values that the backward pass reads; each copy group waits for a token.

    Args:
        module: The module, which is changed in place.
        copying: The options of copying.
        steps: The steps of the module, if they are already computed.
    """
    return clone_marked(
        module, steps or numbered_steps(module), lambda _, step: plan_of_marks(step, copying), copying.permission
    )


def clone_marked(
    module: ModuleOp, steps: Steps, plan_of: Callable[[FuncOp, Step], Plan], permission: Permission
) -> Cloned:
    """Copy the marked values of each step according to the plan that `plan_of` derives from the marks.

    Marks on operations that must not run twice are removed, with a remark.
    """
    applied, remarks = list[ClonedStep](), list[Remark]()
    numbers = FreeNumbers.free_in(module)
    for function, step in steps:
        remarks.extend(_remove_refused_marks(step, permission))
        plan = plan_of(function, step)
        remarks.extend(_remarks_on_kept_values(step, plan))
        applied.append(_apply(function, step, plan, numbers))
    return Cloned(tuple(applied), tuple(remarks))


def clone_with_plans(
    module: ModuleOp, planned: Sequence[StepPlan], permission: Permission = NO_PERMISSION, steps: Steps | None = None
) -> Cloned:
    """Apply existing plans. They must have been made for exactly this module.

    Raises:
        Refusal: A plan does not match its step, a step has no plan, or a plan has no step.
    """
    plans = {step_plan.function: step_plan for step_plan in planned}
    numbers = FreeNumbers.free_in(module)
    applied = list[ClonedStep]()
    for function, step in steps or numbered_steps(module):
        name = function.sym_name.data
        if (step_plan := plans.pop(name, None)) is None:
            raise Refusal(function, _wrong_program_message(_missing_entry_message(name, planned)))
        if step_plan.graph != step.graph.fingerprint:
            raise Refusal(function, _wrong_program_message(_different_step_message(name, step, step_plan.plan)))
        _require_fit(function, step, step_plan.plan, permission)
        for violation in unknown_operations(step.graph, step_plan.notes):
            raise Refusal(function, f"the plan cannot be applied: {violation}")
        write_notes(step, step_plan.notes)
        verify_attributes(every_operation(function))
        applied.append(_apply(function, step, step_plan.plan, numbers))
    if plans:
        raise Refusal(
            module,
            _wrong_program_message(f"the module has no step @{next(iter(plans))}, for which the plan has an entry"),
        )
    return Cloned(tuple(applied), ())


def _wrong_program_message(difference: str) -> str:
    """Return the error message for a plan that was made for another program; `difference` states how they differ."""
    return (
        f"the plan is for another program: {difference}; make a plan for this program, with the options of the rewrite "
        "that will apply it"
    )


def _missing_entry_message(name: str, planned: Sequence[StepPlan]) -> str:
    """Return a message for a step without an entry in the plan. The message lists the entries."""
    steps = ", ".join(sorted(f"@{step_plan.function}" for step_plan in planned))
    return f"the plan has no entry for @{name}; it has entries for {steps or 'none'}"


def _different_step_message(name: str, step: Step, plan: Plan) -> str:
    """Return a message for a step whose graph differs from the graph of the plan's entry with the same name."""
    operations = len(step.numbered.operations)
    named = [op for group in plan.groups for op in group.operations]
    difference = f"@{name} is not the step for which it was made"
    if named and max(named) >= operations:
        return f"{difference}: it has {counted(operations, 'operation')}, but the plan names operation {max(named)}"
    return f"{difference}: its {operations} operations differ in kind, size or order"


def clone_with_planner(
    module: ModuleOp, planner: Planner, permission: Permission = NO_PERMISSION, steps: Steps | None = None
) -> Cloned:
    """Apply to each step the plan that a user's planner returns for it.

    Raises:
        Refusal: The planner returns no plan, or one that does not match the step.
    """
    applied = list[ClonedStep]()
    remarks = list[Remark]()
    numbers = FreeNumbers.free_in(module)
    for function, step in steps or numbered_steps(module):
        with part("plan"):
            try:
                plan = planner(step.graph)
            except NoPlan as error:
                names = partial(_operation_text, step)
                raise Refusal(function, error.text(names)) from error
        if not isinstance(plan, Plan):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Refusal(function, f"the planner must return a Plan for each step, not {type(plan).__name__}")
        _require_fit(function, step, plan, permission)
        remarks.extend(ineffective_marks(step, plan))
        applied.append(_apply(function, step, plan, numbers))
    return Cloned(tuple(applied), tuple(remarks))


def _operation_text(step: Step, op: int) -> str:
    """Return a description of the operation with index `op`, with its source line."""
    return describe_briefly(step.operation(op))


@part("clone")
def _apply(function: FuncOp, step: Step, plan: Plan, numbers: FreeNumbers) -> ClonedStep:
    """Apply a plan to a step, and verify that each operation reads the value that the plan prescribes."""
    name = function.sym_name.data
    recomputed = tuple([replace(remark, function=name) for remark in recomputed_remarks(step, plan)])
    record = ClonedStep(name, step.graph, plan, tuple(notes_of(step)), recomputed)
    apply_plan(step, plan, numbers)
    for op, difference in wrong_reads(step, plan):
        raise Refusal(op, f"{name_of(op)} does not read the value that the plan prescribes: {difference}")
    return record


def _require_fit(function: FuncOp, step: Step, plan: Plan, permission: Permission) -> None:
    for violation in violations(step.graph, plan, unrepeatable_operations(step, permission)):
        raise Refusal(function, f"the plan cannot be applied: {violation}")


def _remove_refused_marks(step: Step, permission: Permission) -> Iterator[Remark]:
    """Remove the marks on operations that must not run twice, and yield a remark for each."""
    for op, reason in list(refused_marks(step, permission)):
        del op.attributes[Names.RECOMPUTE]
        yield Remark(op, reason, topic=Topic.MARK_REFUSED)


def _remarks_on_kept_values(step: Step, plan: Plan) -> Iterator[Remark]:
    """Yield a remark for each marked value that is kept, and correct the mark if other results of its operation are
    copied."""
    yield from ineffective_marks(step, plan)
    for op, index, reason in list(marked_results_kept(step, plan)):
        op.attributes[Names.RECOMPUTE] = with_kept(op, [op.results[index]])
        yield Remark(op, f"result {index} of {name_of(op)} is kept: {reason}")


@dataclass(frozen=True)
class ClonePass(ModulePass):
    """
    copies: maximum number of copies of an operation; with 2, outputs of a segment may be copied before its inside.
    chain: each copy group also waits for the gradient operation before it.
    collectives: allow copies of collectives; the copies run equally often on all devices and on new channels.
    preserve_rng_state: never copy unseeded random operations; if false, copies may draw different numbers. The proof
    refuses such a result, so it is written only with `--no-proof`.
    strict: report an error, instead of a remark, if a mark or a segment has no effect.
    """

    name = "recompute-clone"

    copies: int = 2
    chain: bool = False
    collectives: bool = False
    preserve_rng_state: bool = True
    strict: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        permission = Permission(self.collectives, self.preserve_rng_state)
        copying = CloneOptions(GroupOptions(self.copies, chain=self.chain), permission=permission)
        with outline_temporarily(op):
            is_marked = any(Names.RECOMPUTE in inner.attributes for inner in every_operation(op))
            cloned = clone(op, copying)
            remarks = cloned.remarks if is_marked else (*cloned.remarks, Remark(op, NOT_MARKED))
            tell(ctx, demand_effect(remarks, self.strict))
            tell(ctx, cloned.recomputed)
