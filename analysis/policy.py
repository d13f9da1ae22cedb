"""What a policy says of each region: recompute its inside, or why not.

Marking and explaining read the same decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from ..dialects.recompute import Names
from .phases import Phases
from .regions import find_regions
from .step import Step
from .units import Kept, Unit, find_unit, region_outputs


@dataclass(frozen=True)
class Decision:
    """One region instance: `inside` may be recomputed, `outputs` are kept. `reason` says why nothing is recomputed.

    `first` is its first operation, where it is reported.

    `unit` is what recomputing it means, also where it is not worth it; None where it cannot be done.
    """

    region: str
    first: Operation
    inside: tuple[Operation, ...]
    outputs: tuple[Operation, ...]
    unit: Unit | None
    reason: str | None

    @property
    def recomputed(self) -> bool:
        return self.reason is None


def explicit_mark(op: Operation) -> bool | None:
    """`recompute.recompute` as the user wrote it; it wins over every policy."""
    mark = op.attributes.get(Names.RECOMPUTE)
    return bool(mark.value.data) if isinstance(mark, IntegerAttr) else None


def decide(phases: Phases, pattern: str) -> list[Decision]:
    """One decision for each region instance, in program order. Raises `NoSuchRegion`."""
    step = Step.of(phases)
    members = dict[str, list[Operation]]()
    for op, region in find_regions(phases, pattern).items():
        members.setdefault(region, []).append(op)
    return [_decide(step, region, operations) for region, operations in members.items()]


def _decide(step: Step, region: str, operations: Sequence[Operation]) -> Decision:
    """Outputs of the region are kept: were they recomputed, each region would need the one before it again."""
    kept = region_outputs(step, operations)
    kept.update(op for op in operations if any(result in step.returned for result in op.results))
    inside = tuple(op for op in operations if (explicit_mark(op) if explicit_mark(op) is not None else op not in kept))
    outputs = tuple(op for op in operations if op in kept and op not in inside)
    found = find_unit(step, region, inside)
    unit = found if isinstance(found, Unit) else None
    forced = any(explicit_mark(op) for op in operations)
    return Decision(region, operations[0], inside, outputs, unit, _why_not(found, forced))


def _why_not(found: Unit | Kept | None, forced: bool) -> str | None:
    if found is None:
        return "no gradient operation reads a value from inside it"
    if isinstance(found, Kept):
        return found.reason
    if found.saved_bytes <= 0 and not forced:
        return (
            f"nothing is saved: recomputing frees {found.freed_bytes} bytes and keeps "
            f"{found.pinned_bytes} bytes alive in their place"
        )
    return None
