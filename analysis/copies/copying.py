"""How copies are made: the options of `recompute-clone` as data."""

from __future__ import annotations

from dataclasses import dataclass

from ...planning.by_segment.each_pass import in_each_pass
from ...planning.by_segment.plan_segments import plan_segments
from ...planning.by_segment.targets import Targets
from ...planning.plan import Plan
from ...rules.permission import NOTHING, Permission
from ..step.step import Step
from .legality import refused


@dataclass(frozen=True)
class Copying:
    """copies: at most so many of one operation. chain: each group also waits for the gradient operation before it,
    which keeps groups apart that would all be ready at once. beside: a segment is copied in two parts only where the
    second could run beside the first. each_pass: a segment that the backward pass comes back to is copied again (see
    `planning/by_segment/each_pass.py`). staged, joined: it is copied in parts at all, and its tokens hold the
    cotangents too that join later; bytes and reasons are the same without.
    permission: what may run a second time though it is no function of its operands.
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


DEFAULT = Copying()
