"""Budgets for what segments save for their own gradient, written as marks: made again, or kept.

    segment-budgets="layer*:50%"

    %1 = stablehlo.sine %0 {recompute.segment = "layer0", recompute.recompute = true}     // made again
    %2 = stablehlo.tanh %1 {recompute.segment = "layer0", recompute.recompute = false}    // kept, within the budget

What is chosen is carried out on paper and counted; what could not be held back is kept, and the rest chosen anew. The
marks are as good as a user's: everything behind them heeds them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...analysis.copies.copying import Copying
from ...analysis.copies.legality import refused
from ...analysis.copies.marked import plan_of_marks
from ...analysis.memory.labels import described
from ...analysis.request.segment_budgets import Budgeted, budgeted, why_none
from ...analysis.step.functions import functions_of
from ...analysis.step.marks import Policy, mark_of
from ...analysis.step.step import Step
from ...dialects.names import Names
from ...options.segment_budgets import SegmentBudget, read_budgets
from ...options.selection import AUTO, BadSelection, Selection
from ...planning.by_segment.piece import KEPT, TOO_EARLY
from ...planning.by_segment.saved import saved_after, saved_bytes
from ...planning.by_segment.within import Known, Segment, Settled, TooLittle, settled
from ...planning.graph import Graph
from ...planning.plan import Plan
from ...support.diagnostics import Refusal, Remark
from ...support.timing import part
from ...support.walk import every_operation
from ..per_device.bodies import is_stand_in
from ..phase import Steps

ROUNDS = 12
"""So often what is chosen is counted, and chosen anew."""
NAMED = 3
"""So many of the storages that hold a minimum up are told."""

TOGETHER = "no choice keeps the budgets of all segments together, which is proved; beside the others the least is"
NOT_PROVED = "nothing is proved; beside the others the least found is"


@dataclass(frozen=True)
class Demand:
    """What the segments of one step may save: their operations, the most bytes, and a plan that keeps that."""

    segments: Mapping[str, frozenset[int]]
    most: Mapping[str, int]
    plan: Plan

    def broken(self, graph: Graph, plan: Plan) -> str | None:
        """In words, the segment that saves more with the plan than it may; None where all hold."""
        for name, saved in saved_bytes(graph, self.segments, plan).items():
            if saved > self.most[name]:
                return f"segment '{name}' would save {saved} bytes, and may save {self.most[name]}"
        return None


@dataclass(frozen=True)
class Demands:
    """By function, and what is to be said."""

    of: Mapping[str, Demand] = field(default_factory=dict[str, Demand])
    remarks: tuple[Remark, ...] = ()


@part("segment budgets")
def mark_segment_budgets(steps: Steps, selection: Selection) -> Demands:
    """Write the marks. Raises `Refusal` below what a segment has to save, at the segment; and where there is no such
    segment, and for what is no budget."""
    first = steps[0][0]
    try:
        budgets = read_budgets(selection.segment_budgets)
        found = [(function, step, *budgeted(step.phases, budgets)) for function, step in steps]
    except BadSelection as error:
        raise Refusal(first, str(error)) from error
    for budget in budgets:
        if all(budget in left for *_, left in found):
            _refuse_unknown([(function, step) for function, step, *_ in found], budget)
    demands, remarks = dict[str, Demand](), list[Remark]()
    for function, step, segments, _ in found:
        if segments:
            one = _Chooser(step, segments, selection)
            demands[_name(function)] = one.choose()
            remarks += one.said()
    return Demands(demands, tuple(remarks))


class Done(Protocol):
    """The plan that was carried out in a function, and the graph that it is for."""

    @property
    def function(self) -> str: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def plan(self) -> Plan: ...


def demand_kept(module: ModuleOp, demands: Mapping[str, Demand], done: Iterable[Done]) -> None:
    """Raises `Refusal` where a segment saves more than it may, since others compute from it."""
    for one in done:
        demand = demands.get(one.function)
        if demand is not None and (why := demand.broken(one.graph, one.plan)) is not None:
            function = next((at for at in functions_of(module) if _name(at) == one.function), module)
            raise Refusal(function, f"{why}: what else is asked for is computed from it")


def _name(function: FuncOp) -> str:
    return function.sym_name.data


def of_rest(selection: Selection) -> Selection:
    """What is asked of the other segments: nothing, if nothing is said of them."""
    is_open = selection.segments == AUTO.segments and selection.checkpoints is None and not selection.segment_count
    if selection.segment_budgets and is_open:
        return replace(selection, segments="none", segment_budgets=())
    return replace(selection, segment_budgets=())


def _refuse_unknown(steps: Steps, budget: SegmentBudget) -> None:
    """Where there are several functions the place of what is worked on elsewhere says nothing."""
    likely = [one for one in steps if not any(map(is_stand_in, every_operation(one[0])))] or list(steps)
    function, step = likely[0]
    raise Refusal(function, why_none(step.phases, budget))


@dataclass
class _Chooser:
    """For one step."""

    step: Step
    found: Sequence[Budgeted]
    selection: Selection
    done: Mapping[str, Settled] = field(default_factory=dict[str, Settled])
    forced: frozenset[Operation] = frozenset()

    def choose(self) -> Demand:
        """Raises `Refusal`."""
        self.forced = frozenset(op for one in self.found for op in one.operations if _is_forced(op))
        step, graph = self.step, self.step.graph
        segments = {one.name: self._segment(one) for one in self.found}
        members = frozenset[int]().union(*(segment.operations for segment in segments.values()))
        once, known = refused(step, self.selection.permission), self._marked(members)
        how = Copying(permission=self.selection.permission)
        for _ in range(ROUNDS):
            done = settled(graph, segments, once, self.selection.outputs, known)
            if isinstance(done, TooLittle):
                raise Refusal(self._first(done.segment), self._too_little(done))
            self.done = done
            self._write()
            plan = plan_of_marks(step, how)
            if not (late := self._late(saved_after(graph, plan, members))):
                most = {name: one.most for name, one in done.items()}
                return Demand({name: one.operations for name, one in segments.items()}, most, plan)
            again = frozenset[int]().union(*(one.again for one in done.values()))
            known.stays.update((v, TOO_EARLY) for v in late & again)
            known.read |= late - again
        raise Refusal(self._first(self.found[0].name), "segment-budgets: no choice keeps them; nothing is proved")

    def _segment(self, one: Budgeted) -> Segment:
        operations = frozenset(self.step.positions(one.operations))
        plain = saved_bytes(self.step.graph, {one.name: operations})[one.name]
        return Segment(operations, one.budget.most(plain))

    def _marked(self, members: Iterable[int]) -> Known:
        """What the user says of operations."""
        stays, again = dict[int, str](), set[int]()
        for op in members:
            for value in self.step.graph.makes[op]:
                mark = mark_of(self.step.value(value))
                if mark in (Policy.MUST_SAVE, Policy.OFFLOAD):
                    stays[value] = KEPT
                elif mark is Policy.MUST_RECOMPUTE:
                    again.add(value)
        return Known(stays, frozenset(again))

    def _late(self, saved: Collection[int]) -> frozenset[int]:
        """What is saved although it was not to be kept."""
        return frozenset(saved).difference(*(one.kept for one in self.done.values()))

    def _write(self) -> None:
        again = frozenset[int]().union(*(one.again for one in self.done.values()))
        for one in self.found:
            for op in one.operations:
                number = self.step.position(op)
                if not self.done[one.name].is_nothing:
                    op.attributes[Names.SEGMENT] = StringAttr(one.name)
                if number not in self.step.graph.literals and op.results and op not in self.forced:
                    marks = [BoolAttr.from_bool(root in again) for root in self._roots(number)]
                    op.attributes[Names.RECOMPUTE] = marks[0] if len(set(marks)) == 1 else ArrayAttr(marks)

    def _roots(self, op: int) -> list[int]:
        return [self.step.graph.root[value] for value in self.step.graph.makes[op]]

    def _first(self, segment: str) -> Operation:
        return next(one.operations[0] for one in self.found if one.name == segment)

    def _budget(self, segment: str) -> SegmentBudget:
        return next(one.budget for one in self.found if one.name == segment)

    def _too_little(self, one: TooLittle) -> str:
        budget, graph = self._budget(one.segment), self.step.graph
        said = f"segment '{one.segment}' cannot save as little as {one.most} bytes ({budget.pattern}:{budget.text})"
        listed = [
            f"{described(self.step.operation(graph.maker[v]))}, {graph.sizes[v]} bytes: {why}" for v, why in one.holding
        ]
        more = [f"and {len(listed) - NAMED} more"] if len(listed) > NAMED else []
        what = "the proven minimum is" if one.proved else TOGETHER if one.together else NOT_PROVED
        return "; ".join([f"{said}: {what} {one.least} bytes", *listed[:NAMED], *more])

    def said(self) -> Iterator[Remark]:
        """A remark for segments that are alike, at the first of them."""
        alike = dict[str, list[str]]()
        for name, one in self.done.items():
            budget = self._budget(name)
            asked = f"the budget {budget.pattern}:{budget.text}"
            if one.is_nothing:
                words = f"{one.plain} bytes for the backward pass, within {asked}: nothing to do"
            else:
                flops = sum(self.step.graph.flops[op] for op in {self.step.graph.maker[v] for v in one.again})
                words = f"{one.bytes} of {one.plain} bytes for the backward pass, within {asked}, {one.most} bytes"
                words += f": {flops} FLOPs more"
            alike.setdefault(words, []).append(name)
        for words, names in alike.items():
            first = min(names, key=lambda name: self.step.position(self._first(name)))
            who = f"segment '{first}' saves" if len(names) == 1 else f"segment '{first}' and {len(names) - 1} more save"
            yield Remark(self._first(first), f"{who} {words}")


def _is_forced(op: Operation) -> bool:
    """What the user says wins."""
    said = {mark_of(result) for result in op.results}
    return Names.RECOMPUTE in op.attributes and not said <= {None, Policy.PREFER_SAVE, Policy.PREFER_RECOMPUTE}
