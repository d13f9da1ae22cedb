"""Choosing among the candidates of a step: each is planned, its peaks are forecast, and the lowest is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ..analysis.copies.attempts import FIRST, Attempt, attempts_for
from ..analysis.copies.copying import Copying
from ..analysis.copies.decide import Decisions, decide, explicit_mark
from ..analysis.copies.marked import completed, refused_marks
from ..analysis.memory.peaks import Forecast, Peaks
from ..analysis.request.segments import named_segments
from ..analysis.step.marks import asks_to_recompute, is_forced, is_to_recompute
from ..analysis.step.step import Step
from ..dialects.names import Names
from ..options.selection import Selection
from ..planning.by_segment.by_structure import Cuts
from ..planning.by_segment.each_pass import in_each_pass
from ..planning.by_segment.targets import Targets
from ..planning.objective import AS_GOOD, BLOCK_GAINS, MOSTLY, STRUCTURE_GAINS, STRUCTURES, WORTH_IT
from ..planning.plan import Plan
from ..support.timing import part


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
    how = Copying(copies, attempt.chain, attempt.beside, attempt.each_pass, permission=selection.permission)
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


CHOSEN = ", chosen of "
"""What every remark about the choice of an attempt says."""


@dataclass(frozen=True)
class Tried:
    """An attempt with its peaks."""

    planned: Planned
    peaks: Peaks


@dataclass(frozen=True)
class Choice:
    """What is carried out of what was tried. `refused`: why the step is better left as it was, None where it is not;
    `is_free`: it may be left so, since nobody has forced a copy."""

    before: Peaks
    chosen: Tried
    tried: tuple[Tried, ...]
    refused: str | None
    is_free: bool = False

    def said(self) -> Iterator[str]:
        """What somebody who looks at the result would wonder about."""
        attempt = self.chosen.planned.attempt
        if replace(attempt, chain=False) != FIRST:
            yield f"{attempt}{CHOSEN}{len(self.tried)} attempts"
        outside, saved = _saved_outside(self.chosen.planned)
        if outside > MOSTLY * saved:
            yield (
                f"{outside} of the {saved} bytes that are saved for the backward pass lie outside of every segment: "
                "name more of the model (jax.named_scope), or say nothing of segments"
            )


def _saved_outside(planned: Planned) -> tuple[int, int]:
    """Of the bytes that the backward pass reads those that no segment makes, and all; nothing where none was asked."""
    step, members = planned.decided.step, planned.decided.resolved.members
    inside = {step.position(op) for operations in members.values() for op in operations}
    return _outside_of(step, inside) if inside else (0, 0)


def _outside_of(step: Step, inside: Set[int]) -> tuple[int, int]:
    """Of the bytes that the backward pass reads those that none of these operations makes, and all."""
    graph = step.graph
    read = (value for op, makes in enumerate(graph.makes) if graph.forward[op] for value in makes)
    roots = {graph.root[value] for value in read if graph.gradient_readers[value]} - graph.constants
    made = [root for root in roots if graph.maker[root] >= 0]
    outside = [root for root in made if graph.maker[root] not in inside]
    return sum(graph.sizes[root] for root in outside), sum(graph.sizes[root] for root in made)


def choose(step: Step, selection: Selection, forecast: Forecast, attempts: int, copies: int = 2) -> Choice:
    """`attempts`: of so many different plans the peaks are asked for. Raises `BadSelection`."""

    named = named_segments(step.phases, selection)
    meant = dict[tuple[Cuts | None, bool], Meant]()

    def planned(attempt: Attempt) -> Planned:
        # How it is copied decides nothing.
        place = attempt.cuts, attempt.own_outputs
        if place not in meant:
            meant[place] = Meant.of(
                step, selection, attempt, None if attempt.cuts or selection.segment_count else named
            )
        return plan_attempt(step, selection, attempt, meant[place], copies)

    def tried(one: Planned) -> Tried:
        return Tried(one, forecast.of_plan(one.plan, one.segments))

    before = forecast.without_copies()

    def every() -> Iterator[Planned]:
        for attempt in _attempts(step, selection, named):
            one = planned(attempt)
            yield one
            if (again := in_each_pass(step.graph, one.plan)) is not one.plan:
                yield Planned(replace(attempt, each_pass=True), one.decided, again)

    found = [*map(tried, islice(_distinct(every()), attempts))]
    if forecast.ordered and not found[0].peaks.is_steady:
        found.append(tried(planned(replace(found[0].planned.attempt, chain=True))))
    chosen = least(found, before, forecast.ordered)
    if forecast.ordered and not chosen.peaks.is_steady and not chosen.planned.attempt.chain:
        chained = tried(planned(replace(chosen.planned.attempt, chain=True)))
        chosen = min(chosen, chained, key=lambda one: one.peaks.eager)
    forced = any(map(is_forced, step.phases.order.operations))
    nothing = forced or not chosen.planned.plan.copies
    refused = None if nothing else why_worse(before, chosen.peaks, forecast.ordered)
    return Choice(before, chosen, tuple(found), refused, not nothing)


def _attempts(step: Step, selection: Selection, named: Mapping[Operation, str] | None) -> Iterator[Attempt]:
    operations = step.phases.order.operations
    stated = any(Names.SEGMENT in op.attributes or explicit_mark(op) is not None for op in operations)
    if not named:
        return attempts_for(step.graph, selection, named is None, stated)
    outside, saved = _outside_of(step, {step.position(op) for op in named})
    return attempts_for(step.graph, selection, True, stated, STRUCTURES if outside <= MOSTLY * saved else None)


def _distinct(found: Iterator[Planned]) -> Iterator[Planned]:
    """Those whose plans differ; the first also where it copies nothing, for what it says about that."""
    seen = list[Plan]()
    for one in found:
        if one.plan not in seen and (one.plan.copies or not seen):
            seen.append(one.plan)
            yield one


def least(found: Sequence[Tried], before: Peaks, ordered: bool) -> Tried:
    """What needs least; of those that are as good, what needs least in program order; of those again the first."""
    if len(found) == 1:
        return found[0]
    size: Callable[[Tried], int] = (lambda one: one.peaks.xla) if ordered else (lambda one: one.peaks.in_order)
    copying = [one for one in found if one.planned.plan.copies] or found
    better = [one for one in copying if why_worse(before, one.peaks, ordered) is None] or copying
    better = [one for one in better if not (ordered and _needs_more(before, one.peaks))] or better
    return _as_good(_as_good(_by_trust(better, size), size), lambda one: one.peaks.in_order)[0]


def _by_trust(found: Sequence[Tried], size: Callable[[Tried], int]) -> Sequence[Tried]:
    """Named segments, if there are any; repeated blocks, or cuts by structure alone, if these gain more than the models
    err.

    Both models are heard, that of XLA:CPU twice: the shares of the peak that are needed are multiplied.
    """
    believed = list[Tried]()
    for kind in ("named", "blocks", "structure"):
        others = [one for one in found if _kind(one) == kind]
        gains = BLOCK_GAINS if believed and _kind(believed[0]) == "blocks" else STRUCTURE_GAINS
        if not believed or (others and _gained(others, size) < gains * _gained(believed, size)):
            believed = others
    return believed


def _kind(tried: Tried) -> str:
    cuts = tried.planned.attempt.cuts
    return "named" if cuts is None else cuts.found_by


def _gained(found: Sequence[Tried], size: Callable[[Tried], int]) -> int:
    return min(map(size, found)) ** 2 * min(one.peaks.in_order for one in found)


def _as_good(found: Sequence[Tried], size: Callable[[Tried], int]) -> list[Tried]:
    """Those that need no more than the least by a share that counts."""
    least = min(map(size, found))
    return [one for one in found if size(one) <= AS_GOOD * least]


def _needs_more(before: Peaks, after: Peaks) -> bool:
    """Whether XLA:CPU would need more for it than for the plain step, by its model."""
    return after.xla > before.xla * (1 + WORTH_IT)


def why_worse(before: Peaks, after: Peaks, ordered: bool) -> str | None:
    """Why a step is better left as it was; None where some peak falls by a share that is worth it, and none rises so.

    `ordered`: the step is for executors with an order of their own.
    """
    pairs = [("the peak", before.in_order, after.in_order)]
    if ordered:
        pairs.append(("the peak of an executor that starts operations as soon as it can", before.eager, after.eager))
    for what, old, new in pairs:
        if new > old * (1 + WORTH_IT):
            return f"recomputing takes {what} from {old} to {new} bytes"
    if any(_is_worth_it(old, new) for _, old, new in pairs):
        return None
    if ordered and _is_worth_it(before.xla, after.xla):
        return None
    under_xla = f", and from {before.xla} to {after.xla} under XLA:CPU" if ordered else ""
    return (
        f"recomputing takes the peak from {before.in_order} to {after.in_order} bytes{under_xla}: less than 1 % saved"
    )


def _is_worth_it(before: int, after: int) -> bool:
    return after < before * (1 - WORTH_IT)
