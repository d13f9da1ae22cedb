"""Decisions on segments, as data: the values to recompute in each segment, or the reason to skip the segment.

`search/choice/segment_decisions.py` makes the decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from ...planning.plan import CopyGroup
from ..request.resolved import ResolvedSelection
from ..step.step import Step


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision for one segment instance.

    Attributes:
        segment: The name of the instance; "" for operations outside segments.
        operations: The operations of the segment, in program order.
        values: The values that may be recomputed.
        groups: The copy groups that would recompute the values, even if recomputing them is not worthwhile; empty if
            recomputing them is impossible.
        reason: The reason that nothing is recomputed, a `SkipReason` or other text; None if `values` are recomputed.
        own_gradient_readers: For each output that is recomputed only for the segment's own gradient, the readers of the
            copy.
    """

    segment: str
    operations: tuple[Operation, ...]
    values: frozenset[SSAValue]
    groups: tuple[CopyGroup, ...]
    reason: str | None
    own_gradient_readers: Mapping[SSAValue, frozenset[int]] = field(default_factory=dict[SSAValue, frozenset[int]])

    @property
    def first(self) -> Operation:
        """The operation at which remarks on the segment are reported."""
        return self.operations[0]

    @property
    def recomputed(self) -> bool:
        return self.reason is None

    @property
    def inside(self) -> tuple[Operation, ...]:
        return tuple(op for op in self.operations if any(result in self.values for result in op.results))

    @property
    def outputs(self) -> tuple[Operation, ...]:
        """The operations of the segment whose results are all kept."""
        return tuple(op for op in self.operations if not any(result in self.values for result in op.results))


@dataclass(frozen=True)
class SegmentDecisions:
    """The decisions of a step in program order, and the resolved selection."""

    step: Step
    decisions: tuple[Decision, ...]
    resolved: ResolvedSelection
