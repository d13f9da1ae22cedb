"""Options of copying: those of `recompute-clone` as data."""

from __future__ import annotations

from dataclasses import dataclass

from ...planning.by_segment.copy_groups import plan_segments
from ...planning.by_segment.copy_requests import Targets
from ...planning.by_segment.each_pass import in_each_pass
from ...planning.plan import Plan
from ...rules.permission import NOTHING, Permission
from ..step.step import Step
from .legality import refused


@dataclass(frozen=True)
class CloneOptions:
    """Options of the planner for copies of segments.

    copies: the maximum number of copies of one operation.
    chain: each copy group also waits for the preceding gradient operation, which separates groups that would all be
        ready at once.
    beside: copy a segment in two parts only if the second part could run concurrently with the first.
    each_pass: copy a segment again for each pass of the gradient over it (see `planning/by_segment/each_pass.py`).
    staged: copy segments in parts. joined: tokens also hold cotangents that join later. Neither changes bytes or
        reasons.
    permission: operations that may run twice although they are no functions of their operands.
    """

    copies: int = 2
    chain: bool = False
    beside: bool = True
    each_pass: bool = False
    staged: bool = True
    joined: bool = True
    permission: Permission = NOTHING

    def plan(self, step: Step, targets: Targets) -> Plan:
        forbidden = refused(step, self.permission)
        plan = plan_segments(
            step.graph, targets, forbidden, self.copies, self.chain, self.beside, self.staged, self.joined
        )
        return in_each_pass(step.graph, plan) if self.each_pass else plan


DEFAULT = CloneOptions()
