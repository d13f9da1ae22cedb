"""What an attempt means for a step: its plan, and what the step will need once the plan is carried out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.recompute import Names
from ...dialects.stopwatch import part
from ...planning.by_segment.early import early_parts
from ...planning.by_segment.targets import Targets, with_views
from ...planning.evaluate import peak_bytes
from ...planning.graph import Graph
from ...planning.orders import eager
from ...planning.plan import Plan
from ...planning.rewriting import HoldingBack, Rewritten, as_graph, carried_out, held_back
from ..request.selection import Selection
from ..step.marks import asks_to_recompute, is_forced, is_to_recompute
from ..step.step import Step
from .attempts import Attempt
from .copying import Copying
from .decide import Decision, Decisions, decide, explicit_mark


@dataclass(frozen=True)
class Planned:
    """An attempt, what it decides, and the plan. Nothing is written yet."""

    attempt: Attempt
    decided: Decisions
    plan: Plan

    @property
    def graph(self) -> Graph:
        return self.decided.step.graph

    @cached_property
    def program(self) -> Rewritten:
        return carried_out(self.graph, self.plan)

    @cached_property
    def graph_after(self) -> Graph:
        return as_graph(self.graph, self.program)


@part("plan")
def plan_attempt(step: Step, selection: Selection, attempt: Attempt, how: Copying) -> Planned:
    """Raises `BadSelection`."""
    decided = decide(step, selection, attempt)
    targets, spoken_of = _targets(step, decided)
    return Planned(attempt, decided, how.plan(step, with_views(step.graph, targets, spoken_of)))


def _targets(step: Step, decided: Decisions) -> tuple[Targets, frozenset[int]]:
    """What the marks that the decisions are written as would say, and of which operations they speak."""
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
        if Names.RECOMPUTE in op.attributes or Names.CHECKPOINT in op.attributes:
            spoken_of.add(index)
        if not step.graph.forward[index]:
            continue
        stated = op.attributes.get(Names.SEGMENT)
        if isinstance(stated, StringAttr):
            segments.setdefault(index, stated.data)
        if op not in settled and asks_to_recompute(op):
            values.update(step.number(result) for result in op.results if is_to_recompute(result))
    for value in values:
        segments.setdefault(step.graph.maker[value], "")
    return Targets(segments, frozenset(values), own), frozenset(spoken_of)
