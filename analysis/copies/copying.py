"""How copies are made: the options of `recompute-clone` as data."""

from __future__ import annotations

from dataclasses import dataclass

from ...planning.by_segment.plan_segments import plan_segments
from ...planning.by_segment.targets import Targets
from ...planning.plan import Plan
from ...rules.permission import Permission
from ..step.step import Step
from .legality import refused


@dataclass(frozen=True)
class Copying:
    """copies: at most so many of one operation. chain: each group also waits for the gradient operation before it,
    which keeps groups apart that would all be ready at once. collectives, preserve_rng_state: see
    `rules/permission.py`.
    """

    copies: int = 2
    chain: bool = False
    collectives: bool = False
    preserve_rng_state: bool = True

    @property
    def permission(self) -> Permission:
        return Permission(self.collectives, self.preserve_rng_state)

    def plan(self, step: Step, targets: Targets) -> Plan:
        return plan_segments(step.graph, targets, refused(step, self.permission), self.copies, self.chain)


DEFAULT = Copying()
