"""recompute-clone: copy the marked operations of each segment to the point where the gradient reads their results.

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

from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
)
from ..analysis.request.misplaced_marks import misplaced_marks
from ..analysis.request.unprefixed_marks import unprefixed_marks
from ..analysis.step.marks import with_kept
from ..analysis.step.module_steps import numbered_steps
from ..analysis.step.step import Step, Steps
from ..dialects.names import Names
from ..options.selection import PhaseHint
from ..planning.by_segment.copy_groups import GroupOptions
from ..planning.plan import Plan
from ..planning.skip_reason import frees_nothing
from ..rules.effects import Permission
from ..support.operations import every_operation, name_of
from ..support.remarks import Remark, Topic, demand_effect, tell
from .outlining.nested_steps import outline_temporarily
from .phase import write_phases
from .plans.apply_plan import FreeNumbers
from .plans.cloned_steps import Cloned, ClonedStep, clone_step

NOT_MARKED = (
    f"nothing is copied: no operation has the mark {Names.RECOMPUTE}; run recompute-mark, recompute-plan or "
    "recompute-offload before recompute-clone"
)


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
        applied.append(clone_step(function, step, plan, numbers))
    return Cloned(tuple(applied), tuple(remarks))


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
        text = f"result {index} of {name_of(op)} is kept: {reason}"
        yield Remark(op, text, frees_nothing=frees_nothing(reason))


@dataclass(frozen=True)
class ClonePass(ModulePass):
    """
    copies: maximum number of copies of an operation; with 2, outputs of a segment are copied before its inner values.
    chain: each copy group also waits for the gradient operation before it.
    collectives: allow copies of collectives; the copies run equally often on all devices and on new channels.
    preserve_rng_state: never copy unseeded random operations; if false, copies may draw different numbers. The proof
    refuses such a result, so it is written only with `--no-proof`.
    strict: report an error instead of a remark if a mark or a segment has no effect.
    primal_results: indices of the results of the forward pass, for steps whose operations carry no phase information.
    primal_values: names of values of the forward pass, such as a loss that is not returned.
    cotangents: indices of the arguments that are cotangents, an alternative to primal_results.
    """

    name = "recompute-clone"

    copies: int = 2
    chain: bool = False
    collectives: bool = False
    preserve_rng_state: bool = True
    strict: bool = False
    primal_results: tuple[int, ...] = ()
    primal_values: tuple[str, ...] = ()
    cotangents: tuple[int, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if hint := PhaseHint(self.primal_results, self.primal_values, self.cotangents):
            write_phases(op, hint)
        permission = Permission(self.collectives, self.preserve_rng_state)
        copying = CloneOptions(GroupOptions(self.copies, chain=self.chain), permission=permission)
        with outline_temporarily(op):
            is_marked = any(Names.RECOMPUTE in inner.attributes for inner in every_operation(op))
            without_effect = (*unprefixed_marks(op), *misplaced_marks(op))
            cloned = clone(op, copying)
            remarks = cloned.remarks if is_marked else (*cloned.remarks, Remark(op, NOT_MARKED))
            tell(ctx, demand_effect((*without_effect, *remarks), self.strict))
            tell(ctx, cloned.recomputed)
