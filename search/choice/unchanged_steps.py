"""Make the remarks on steps that are left unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Operation

from ...planning.by_segment.numbered_segments import is_numbered
from ...support.diagnostics import Refusal, strict_refusal
from ...support.remarks import Remark, Topic

UNCHANGED = "the step is left as it is"
_OTHERS_UNCHANGED = "the rest of the step is left as it is"
_IN_OTHERS = "in the rest of the step: "


@dataclass(frozen=True, repr=False)
class UnchangedStepRemark(Remark):
    """A remark that a step is left unchanged.

    Attributes:
        cause: The reason that the step is left unchanged.
        is_rest: Whether only the rest of the step is left unchanged, because its loops are cut or another step is
            rewritten.
    """

    cause: str = ""
    is_rest: bool = False


def remark_on_unchanged_step(op: Operation, reason: str, topic: Topic = Topic.STEP_LEFT) -> Remark:
    """Return the remark that a step is left unchanged, with the reason."""
    return UnchangedStepRemark(op, f"{reason}: {UNCHANGED}", topic=topic, cause=reason)


def reword_for_cut_loops(remarks: Sequence[Remark]) -> tuple[Remark, ...]:
    """Reword the remarks on a step with cut loops, so that they say that only the rest of the step is left
    unchanged."""
    return tuple(
        replace(remark, reason=f"{remark.cause}: {_OTHERS_UNCHANGED}", is_rest=True)
        if isinstance(remark, UnchangedStepRemark) and not remark.is_rest
        else remark
        for remark in remarks
    )


def reword_beside_rewritten(remarks: Sequence[Remark]) -> list[Remark]:
    """Reword the remarks on an unchanged step of a module in which another step, or a loop, has been rewritten.

    Remarks on segments without a name are omitted, because the module is rewritten and the user does not know these
    segments."""
    return [
        replace(remark, reason=f"{_IN_OTHERS}{remark.reason}")
        for remark in reword_for_cut_loops(remarks)
        if not remark.segments or not all(map(is_numbered, remark.segments))
    ]


def demand_effect_of_rewrite(op: Operation, copies: int, remarks: Sequence[Remark]) -> None:
    """Raise an error if a step is unchanged or if a mark is refused, as the option `strict` demands.

    Args:
        op: The operation at which an unchanged step is reported.
        copies: The number of recomputed operations.
        remarks: The remarks of the rewrite.

    Raises:
        Refusal: Nothing is recomputed, or an operation that the user marks must not run twice.
    """
    for remark in remarks:
        if remark.topic is Topic.MARK_REFUSED:
            raise strict_refusal(remark.operation, remark.reason)
    if not copies:
        raise refusal_of_unchanged_step(op, remarks)


def refusal_of_unchanged_step(op: Operation, remarks: Sequence[Remark]) -> Refusal:
    """Return the error that the option `strict` reports for an unchanged step, based on its remarks.

    If the last remark only reports that nothing is recomputed, the error also contains the reason from the preceding
    remark.
    """
    *earlier, last = remarks
    error = strict_refusal(op, last.reason)
    reasons = [remark.reason for remark in earlier if remark.topic is not Topic.CHOICE]
    if last.topic is not Topic.NOTHING_RECOMPUTED or not reasons:
        return error
    return Refusal(op, f"{error.reason}; {reasons[-1]}")
