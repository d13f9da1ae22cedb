"""Apply plans that do not come from marks: the plans of a plan file, or the plans that a user's planner returns.

Such a plan may be for another program, so it is checked against each step before the step changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ...analysis.copies.copying import ineffective_marks, unrepeatable_operations
from ...analysis.step.descriptions import describe_briefly
from ...analysis.step.module_steps import numbered_steps
from ...analysis.step.step import Step, Steps
from ...dialects.discardable import verify_attributes
from ...options.recompute_options import Planner
from ...planning.check import unknown_operations, violations
from ...planning.plan import Plan
from ...planning.plan_file import StepPlan
from ...planning.solvers.result import NoPlan
from ...rules.effects import NO_PERMISSION, Permission
from ...support.counted import counted
from ...support.diagnostics import Refusal
from ...support.operations import every_operation
from ...support.remarks import Remark
from ...support.timing import part
from .apply_plan import FreeNumbers
from .cloned_steps import Cloned, ClonedStep, clone_step
from .notes import write_notes


def clone_with_plans(
    module: ModuleOp, planned: Sequence[StepPlan], permission: Permission = NO_PERMISSION, steps: Steps | None = None
) -> Cloned:
    """Apply existing plans, which must have been made for exactly this module.

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
        applied.append(clone_step(function, step, step_plan.plan, numbers))
    if plans:
        raise Refusal(
            module,
            _wrong_program_message(f"it has an entry for step @{next(iter(plans))}, but the module has no such step"),
        )
    return Cloned(tuple(applied), ())


def _wrong_program_message(difference: str) -> str:
    """Return the error message for a plan that was made for another program; `difference` says how they differ."""
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
        applied.append(clone_step(function, step, plan, numbers))
    return Cloned(tuple(applied), tuple(remarks))


def _operation_text(step: Step, op: int) -> str:
    """Return a description of the operation with index `op`, with its source line."""
    return describe_briefly(step.operation(op))


def _require_fit(function: FuncOp, step: Step, plan: Plan, permission: Permission) -> None:
    for violation in violations(step.graph, plan, unrepeatable_operations(step, permission)):
        raise Refusal(function, f"the plan cannot be applied: {violation}")
