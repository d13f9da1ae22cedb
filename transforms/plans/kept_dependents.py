"""Mark the values that a decision keeps although they are computed from recomputed values.

    %a = stablehlo.sine %x {recompute.recompute = true}           the decision: recompute %a
    %r = stablehlo.multiply %a, %a {recompute.checkpoint}         a residual of %a that the decision keeps

`must_recompute` also applies to the unmarked values that are computed from the marked value and that only the backward
pass reads (`planning/by_segment/plan_targets.py`). Without `recompute.checkpoint`, `recompute-clone` would therefore
also recompute %r. Passes that write decisions write this attribute, so that exactly the decided values are copied.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from ...analysis.copies.copying import NO_CHOSEN_MARKS, targets_of_marks, with_dependent_targets
from ...analysis.step.marks import is_demanded
from ...analysis.step.step import Step
from ...dialects.names import Names

_UNIT = UnitAttr()


def demanded_values(step: Step) -> frozenset[SSAValue]:
    """Return the values of a step with the mark `must_recompute`."""
    return frozenset(value for op in step.phases.order.operations for value in op.results if is_demanded(value))


def keep_dependents(step: Step, requested: Collection[SSAValue]) -> None:
    """Mark the dependents of decided values as kept. A pass calls this function after it has written its decision as
    marks.

    Args:
        step: The step, whose marks include the decision.
        requested: The values that had the mark `must_recompute` before the decision was written; their dependents are
            recomputed.
    """
    targets, marked = targets_of_marks(step, NO_CHOSEN_MARKS)
    all_values = with_dependent_targets(step, targets, marked).values
    intended = with_dependent_targets(step, targets, marked, requested).values
    for value in all_values - intended:
        step.operation(step.graph.maker[value]).attributes[Names.CHECKPOINT] = _UNIT
