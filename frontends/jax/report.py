"""A step before and after, as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax

from ...driver.api import Rewritten
from ...reports.bytes import human_bytes
from .choice import temporary_bytes
from .lowered import Lowered

_MOST = 8
"""So many segments are named; the others are counted."""


def report(lowered: Lowered) -> str:
    """A table of temporaries and FLOPs, measured by compiling both with the same options; then what is recomputed, and
    the remarks."""
    less, done = lowered.compile(), lowered.rewritten
    plain = lowered.compile_plain() if lowered.why is None else less
    lines = [
        f"{lowered.name:<16}{'plain':>14}{'recomputed':>14}{'ratio':>8}",
        _row("temporaries", temporary_bytes(plain), temporary_bytes(less), human_bytes),
        _row("FLOPs", _flops(plain), _flops(less), "{:.3g}".format),
        str(lowered.why) if done is None or lowered.why else f"computed again: {_again(done)}",
        *(f"  {remark}" for remark in lowered.remarks),
    ]
    return "\n".join(lines)


def _row(what: str, before: float | None, after: float | None, said: Callable[[Any], str]) -> str:
    if before is None or after is None:
        return f"{what:<16}{'not told by the compiler':>28}"
    ratio = f"{after / before:.3f}" if before else "-"
    return f"{what:<16}{said(before):>14}{said(after):>14}{ratio:>8}"


def _flops(compiled: jax.stages.Compiled) -> float | None:
    found: Any = compiled.cost_analysis()
    return None if not found or "flops" not in found else float(found["flops"])


def _again(done: Rewritten) -> str:
    """`12 operations: layer1 4, layer0 4, layer2 4`."""
    counts = Counter[str]()
    for group in (group for step in done.plans for group in step.plan.groups):
        counts[group.segment or "unnamed"] += len(group.operations)
    named = [f"{segment} {count}" for segment, count in counts.most_common(_MOST)]
    rest = [f"and {len(counts) - _MOST} more"] if len(counts) > _MOST else []
    return f"{done.copies} operations: {', '.join([*named, *rest])}"
