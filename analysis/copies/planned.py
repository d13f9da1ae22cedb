"""What an attempt means for a step: what it decides, and the plan for all of it together."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ...dialects.recompute import Names
from ...dialects.stopwatch import part
from ...options.selection import Selection
from ...planning.by_segment.targets import Targets
from ...planning.plan import Plan
from ..step.marks import asks_to_recompute, is_forced, is_to_recompute
from ..step.step import Step
from .attempts import Attempt
from .copying import Copying
from .decide import Decisions, decide, explicit_mark
from .marked import completed, refused_marks


@dataclass(frozen=True)
class Planned:
    """An attempt, what it decides, and the plan. Nothing is written yet."""

    attempt: Attempt
    decided: Decisions
    plan: Plan

    @cached_property
    def segments(self) -> Mapping[int, str]:
        """The segment of each operation of a segment that is recomputed, in program order."""
        position = self.decided.step.position
        recomputed = [one for one in self.decided.decisions if one.recomputed and one.segment]
        found = {position(op): decision.segment for decision in recomputed for op in decision.operations}
        return dict(sorted(found.items()))


@dataclass(frozen=True)
class Meant:
    """What an attempt decides, and what the decisions ask for, whatever is said of how it is copied."""

    decided: Decisions
    targets: Targets

    @classmethod
    @part("plan")
    def of(
        cls, step: Step, selection: Selection, attempt: Attempt, named: Mapping[Operation, str] | None = None
    ) -> Meant:
        """`named`: the segments that have names, where they are known. Raises `BadSelection`."""
        decided = decide(step, selection, attempt, named, staged=False)
        unheard = frozenset(op for op, _ in refused_marks(step, selection.permission))
        targets, spoken_of = _targets(step, decided, unheard)
        return cls(decided, completed(step, targets, spoken_of))


@part("plan")
def plan_attempt(step: Step, selection: Selection, attempt: Attempt, meant: Meant, copies: int = 2) -> Planned:
    """`meant`: by the attempt, or by one that cuts and keeps the same. `copies`: at most so many of one operation."""
    how = Copying(copies, attempt.chain, attempt.beside, permission=selection.permission)
    return Planned(attempt, meant.decided, how.plan(step, meant.targets))


def _targets(step: Step, decided: Decisions, unheard: Set[Operation]) -> tuple[Targets, frozenset[int]]:
    """What the marks that the decisions are written as would say, and of which operations they speak.

    `unheard`: operations that may not run twice, whatever their marks say.
    """
    segments, values, own = dict[int, str](), set[int](), dict[int, frozenset[int]]()
    spoken_of = set[int]()
    settled = set[Operation]()
    for decision in decided.decisions:
        if not decision.recomputed:
            settled.update(op for op in decision.operations if explicit_mark(op) and not is_forced(op))
            continue
        own.update({step.number(value): readers for value, readers in decision.own.items()})
        for op in decision.operations:
            index = step.position(op)
            spoken_of.add(index)
            if decision.segment:
                segments[index] = decision.segment
            if explicit_mark(op) is None:
                values.update(step.number(result) for result in op.results if result in decision.values)
    for index, op in enumerate(step.phases.order.operations):
        if not op.attributes:
            # It says nothing.
            continue
        if (Names.RECOMPUTE in op.attributes and op not in unheard) or Names.CHECKPOINT in op.attributes:
            spoken_of.add(index)
        if not step.graph.forward[index]:
            continue
        stated = op.attributes.get(Names.SEGMENT)
        if isinstance(stated, StringAttr):
            segments.setdefault(index, stated.data)
        if op not in settled and op not in unheard and asks_to_recompute(op):
            values.update(step.number(result) for result in op.results if is_to_recompute(result))
    for value in values:
        segments.setdefault(step.graph.maker[value], "")
    return Targets(segments, frozenset(values), own), frozenset(spoken_of)
