"""The marks of operations that follow from the decisions on segments. Marks given by the user take precedence.

`transforms/plans/write_decisions.py` writes these marks as attributes. `search/choice/planned_attempts.py` plans with
the same marks without changing the IR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from xdsl.ir import Operation, SSAValue

from ..step.marks import explicit_mark, is_forced
from .decisions import Decision, SegmentDecisions


class MarkSource(Enum):
    """The origin of an operation's mark."""

    DECISION = "the decision for its segment"
    USER = "the user's mark, which takes precedence over the decision"
    REFUSED_PREFERENCE = "the user's preference for recomputation, in a segment in which that frees no memory"


@dataclass(frozen=True)
class DecidedMark:
    """The mark of an operation, as decided or as given by the user.

    Attributes:
        operation: The operation.
        source: The origin of the mark.
        segment: The segment of the operation; "" if the operation is outside segments, or if the user's preference to
            recompute it is refused.
        recomputed: The results that the decision recomputes for all gradient operations that read them.
        for_own_gradient: The results that the decision recomputes only for the gradient of their own segment. No
            attribute can express this restriction.
    """

    operation: Operation
    source: MarkSource
    segment: str = ""
    recomputed: tuple[SSAValue, ...] = ()
    for_own_gradient: tuple[SSAValue, ...] = ()


def decided_marks(decided: SegmentDecisions) -> Iterator[DecidedMark]:
    """Yield a mark for each operation of a recomputed segment. In a segment that is not recomputed, yield a mark for
    each operation for which the user's preference for recomputation is refused."""
    for decision in decided.decisions:
        yield from _marks_of(decision) if decision.recomputed else _refused_preferences(decision)


def _marks_of(decision: Decision) -> Iterator[DecidedMark]:
    for op in decision.operations:
        targets = [result for result in op.results if result in decision.values]
        yield DecidedMark(
            op,
            MarkSource.DECISION if explicit_mark(op) is None else MarkSource.USER,
            decision.segment,
            tuple([result for result in targets if result not in decision.own_gradient_readers]),
            tuple([result for result in targets if result in decision.own_gradient_readers]),
        )


def _refused_preferences(decision: Decision) -> Iterator[DecidedMark]:
    for op in decision.operations:
        if explicit_mark(op) and not is_forced(op):
            yield DecidedMark(op, MarkSource.REFUSED_PREFERENCE)
