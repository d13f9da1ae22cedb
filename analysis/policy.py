"""What a policy says of each segment: recompute its inside, or why not.

Marking and explaining read the same decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Operation, SSAValue

from ..dialects.recompute import Names
from .copies.copying import Copying
from .copies.moves import movable
from .copies.plan import plan_copies
from .copies.units import ALL_KEPT, NO_GATE, SKIPPED, Kept, Unit
from .copies.wanted import Wanted
from .marks import Policy, is_forced, mark_of
from .phases import Phases
from .selection.selected import Selected, select
from .selection.selection import Selection
from .step import Step


@dataclass(frozen=True)
class Decision:
    """One segment instance: of its `operations`, the `values` may be recomputed. `reason` says why nothing is.

    `units` is what recomputing them means, also where it is not worth it; empty where it cannot be done.
    """

    segment: str
    operations: tuple[Operation, ...]
    values: frozenset[SSAValue]
    units: tuple[Unit, ...]
    reason: str | None

    @property
    def first(self) -> Operation:
        """Where the segment is reported."""
        return self.operations[0]

    @property
    def recomputed(self) -> bool:
        return self.reason is None

    @property
    def inside(self) -> tuple[Operation, ...]:
        return tuple(op for op in self.operations if any(result in self.values for result in op.results))

    @property
    def outputs(self) -> tuple[Operation, ...]:
        """What is kept."""
        return tuple(op for op in self.operations if not any(result in self.values for result in op.results))


@dataclass(frozen=True)
class Decisions:
    """Decisions in program order, and what is to be said besides."""

    decisions: tuple[Decision, ...]
    selected: Selected


def decide(phases: Phases, selection: Selection) -> Decisions:
    """One decision for each segment instance, then one for what moves outside of them. Raises `BadSelection`."""
    step = Step.of(phases)
    selected = select(phases, selection)
    decisions = [
        _skipped(segment, operations)
        if segment in selected.skipped
        else _decide(step, segment, operations, selected.saved, selection)
        for segment, operations in selected.members.items()
    ]
    return Decisions((*decisions, *_outside(step, selected, selection)), selected)


def _outside(step: Step, selected: Selected, selection: Selection) -> list[Decision]:
    """Preferences outside of every segment, and what is moved because only the backward pass reads it."""
    taken = {op for operations in selected.members.values() for op in operations}
    outside = [op for op in step.phases.order.operations if op not in taken and step.phases.is_forward(op)]
    preferred = [op for op in outside if any(mark_of(result) is Policy.PREFER_RECOMPUTE for result in op.results)]
    taken.update(op for op in outside if Names.RECOMPUTE in op.attributes)
    moved = (_decide(step, "", group, frozenset(), replace(selection, outputs=False)) for group in movable(step, taken))
    stated = [_decide(step, "", preferred, frozenset(), replace(selection, outputs=True))] if preferred else []
    return [*stated, *(one for one in moved if one.recomputed)]


def _skipped(segment: str, operations: Sequence[Operation]) -> Decision:
    return Decision(segment, tuple(operations), frozenset(), (), SKIPPED)


def _decide(
    step: Step, segment: str, operations: Sequence[Operation], saved: frozenset[SSAValue], selection: Selection
) -> Decision:
    results = [result for op in operations for result in op.results]
    kept = set[SSAValue]() if selection.outputs else kept_outputs(step, operations)
    kept.update(v for v in results if v in saved or step.storages.of(v) in step.lives_on)
    values = frozenset(v for v in results if _is_wanted(v, v not in kept))
    how = Copying(collectives=selection.collectives, preserve_rng_state=selection.preserve_rng_state)
    plan = plan_copies(step, Wanted(dict.fromkeys(operations, segment), values), how)
    forced = any(is_forced(op) for op in operations) or (selection.outputs and bool(segment))
    reason = _why_not(plan.units, plan.kept, forced)
    return Decision(segment, tuple(operations), values, plan.units, reason)


def _is_wanted(value: SSAValue, by_policy: bool) -> bool:
    """A mark on the operation wins over the policy."""
    mark = mark_of(value)
    return by_policy if mark is None else mark.recomputes


def kept_outputs(step: Step, segment: Sequence[Operation]) -> set[SSAValue]:
    """What a forward operation outside of the segment reads, and what such a value is a view of.

    Were they recomputed, each segment would need the one before it again.
    """
    inside = set(segment)
    order, phases = step.phases.order, step.phases
    found = {
        value
        for op in segment
        for value in op.results
        if any(phases.is_forward(reader) and reader not in inside for reader in order.readers(value))
    }
    return found | {root for value in found if (root := step.storages.of(value)).owner in inside}


def _why_not(units: Sequence[Unit], kept: Sequence[Kept], forced: bool) -> str | None:
    # A segment whose first values are needed at once is the last segment: all of it would have to be there at once.
    ungated = next((one.reason for one in kept if one.reason == NO_GATE), None)
    if ungated is not None or not units:
        return ungated or (kept[0].reason if kept else ALL_KEPT)
    freed, pinned = (sum(sizes) for sizes in zip(*((u.freed_bytes, u.pinned_bytes) for u in units), strict=True))
    if freed <= pinned and not forced:
        return f"nothing is saved: recomputing frees {freed} bytes and keeps {pinned} bytes alive in their place"
    return None


def explicit_mark(op: Operation) -> bool | None:
    """Whether the user says that the operation is recomputed (True) or kept (False); None where nothing is said."""
    said = [mark for result in op.results if (mark := mark_of(result)) is not None]
    return any(mark.recomputes for mark in said) if said else None
