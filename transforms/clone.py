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

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.passes import ModulePass

from ..analysis.copying import DEFAULT, Copying
from ..analysis.marked import kept_results, plan_of_marks, refused_marks, without_effect
from ..analysis.marks import with_kept
from ..analysis.step import Step
from ..dialects.channels import free_channels
from ..dialects.context import demand_effect, tell
from ..dialects.diagnostics import Remark
from ..dialects.recompute import Names
from ..planning.plan import CopyGroup, Plan
from ..rules.names import name_of
from .apply_plan import Numbers, apply_plan
from .phase import steps_of


@dataclass(frozen=True)
class Cloned:
    """What was done: the plan of each step, and a remark for each mark that had no effect."""

    plans: tuple[Plan, ...]
    remarks: tuple[Remark, ...]

    @property
    def groups(self) -> tuple[CopyGroup, ...]:
        return tuple(group for plan in self.plans for group in plan.groups)

    @property
    def copies(self) -> int:
        return sum(plan.copies for plan in self.plans)


def clone(module: ModuleOp, how: Copying = DEFAULT) -> Cloned:
    """Copy every marked value that the backward pass needs, behind a token for its copy group."""
    plans, remarks = list[Plan](), list[Remark]()
    numbers = Numbers(count(_first_free_id(module)), free_channels(module))
    for _, phases in steps_of(module):
        step = Step.of(phases)
        remarks.extend(_refused(step, how))
        plan = plan_of_marks(step, how)
        remarks.extend(without_effect(step, plan))
        remarks.extend(_taken_back(step, plan))
        apply_plan(step, plan, numbers)
        plans.append(plan)
    return Cloned(tuple(plans), tuple(remarks))


def _first_free_id(module: ModuleOp) -> int:
    taken = (op.attributes.get(Names.ID) for op in module.walk())
    return max((number.value.data for number in taken if isinstance(number, IntegerAttr)), default=-1) + 1


def _refused(step: Step, how: Copying) -> Iterator[Remark]:
    """Marks on operations that must not run twice: said, and taken back."""
    for op, reason in list(refused_marks(step, how)):
        del op.attributes[Names.RECOMPUTE]
        yield Remark(op, reason)


def _taken_back(step: Step, plan: Plan) -> Iterator[Remark]:
    """Marks on results that stay, while the operation is copied for the sake of another result."""
    for op, index, reason in list(kept_results(step, plan)):
        op.attributes[Names.RECOMPUTE] = with_kept(op, [op.results[index]])
        yield Remark(op, f"result {index} of {name_of(op)} is kept: {reason}")


@dataclass(frozen=True)
class ClonePass(ModulePass):
    """Copy marked operations into the backward pass, behind dependency tokens.

    `copies`: at most so many copies of one operation. `chain`: each unit waits for the gradient operation before it.
    `collectives`: they may be repeated. `preserve_rng_state=false`: unseeded random operations may draw again. With
    `strict` a mark that has no effect is an error.
    """

    name = "recompute-clone"

    copies: int = 2
    chain: bool = False
    collectives: bool = False
    preserve_rng_state: bool = True
    strict: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        how = Copying(self.copies, self.chain, self.collectives, self.preserve_rng_state)
        tell(ctx, demand_effect(clone(op, how).remarks, self.strict))
