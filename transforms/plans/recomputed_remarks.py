"""Report the recomputed operations of a plan as remarks.

Each remark gives the number of copied operations of a segment, the bytes that no longer need to be saved, and the FLOPs
of the copies. These are `passed` remarks in LLVM's sense, with the topic `RECOMPUTED`. Tools print them only on
request, because a step may have hundreds of segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...analysis.step.step import Step
from ...planning.plan import CopyGroup, Plan
from ...support.counted import counted_are
from ...support.diagnostics import place_of
from ...support.operations import name_of
from ...support.remarks import Remark, RemarkKind, Topic
from ...support.units import format_bytes
from ..per_device.outline import is_stand_in

MAX_NAMES = 3
"""The maximum number of operation names in a remark on operations outside segments."""


def recomputed_remarks(step: Step, plan: Plan) -> Iterator[Remark]:
    """Yield a remark for each segment with copied operations, at its first copied operation.

    Operations outside segments are grouped by their position in the source.
    """
    groups = dict[str, list[CopyGroup]]()
    for group in plan.groups:
        if group.operations:
            groups.setdefault(group.segment or place_of(step.operation(group.operations[0])), []).append(group)
    for of_segment in groups.values():
        yield _remark(step, of_segment)


def _remark(step: Step, groups: Sequence[CopyGroup]) -> Remark:
    """Return the remark on the copy groups of one segment, or of one source position outside segments."""
    numbers = [op for group in groups for op in group.operations]
    originals = step.numbered.operations_of(sorted(set(numbers)))
    first = next((op for op in originals if not is_stand_in(op)), originals[0])
    amounts = {
        "operations": len(numbers),
        "flops": sum(group.extra_flops for group in groups),
        "freed_bytes": sum(group.freed_bytes for group in groups),
        "kept_bytes": sum(group.pinned_bytes for group in groups),
    }
    if segment := groups[0].segment:
        subject = f"segment '{segment}' is recomputed"
    else:
        names = list(dict.fromkeys(map(name_of, originals)))
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        subject = f"recomputed outside segments: {', '.join(names[:MAX_NAMES])}{more}"
    instead = f", {format_bytes(amounts['kept_bytes'])} are kept instead" if amounts["kept_bytes"] else ""
    reason = (
        f"{subject}: {counted_are(amounts['operations'], 'operation')} copied, "
        f"{format_bytes(amounts['freed_bytes'])} need not be saved{instead}, {amounts['flops']} FLOPs more"
    )
    return Remark(
        first,
        reason,
        RemarkKind.PASSED,
        Topic.RECOMPUTED,
        amounts=tuple(amounts.items()),
        segments=(segment,) if segment else (),
    )
