"""The values that hold the peak: the largest alive there, by name and source line, and how many more.

largest at the peak
  %h   stablehlo.dot_general  block3  train.py:41:9   64.0 MiB   7.5 %
  and 310 more                                       785.3 MiB  92.5 %
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from ..analysis.memory.timeline import Timeline
from ..support.units import format_bytes

MOST = 10
WIDEST = 44
"""Longer names are cut in front: the end of a path says most."""


@dataclass(frozen=True)
class Held:
    """A storage alive at the peak. `share`: of the peak."""

    name: str
    operation: str
    segment: str
    phase: str
    recomputed: bool
    source: str
    bytes: int
    share: float


@dataclass(frozen=True)
class Holding:
    """`largest` first; `more` others hold `more_bytes`. What an operation needs inside is one of the others."""

    largest: tuple[Held, ...]
    more: int
    more_bytes: int


def holding_of(timeline: Timeline, most: int = MOST) -> Holding:
    place, peak = timeline.peak_index, timeline.peak_bytes
    alive = [buffer for buffer in timeline.buffers if buffer.first <= place <= buffer.last and buffer.bytes]
    # Stable: what was made first comes first among the equally large.
    alive.sort(key=lambda one: -one.bytes)
    largest = tuple(
        Held(
            one.name, one.label, one.segment, one.phase, one.recomputed, one.source, one.bytes, one.bytes / max(peak, 1)
        )
        for one in alive[:most]
    )
    inside = bool(timeline.inner_bytes) and timeline.inner_bytes[place] > 0
    more = len(alive) - len(largest) + inside
    return Holding(largest, more, peak - sum(one.bytes for one in largest))


def as_dict(holding: Holding) -> dict[str, object]:
    return asdict(holding)


def lines_of(holding: Holding, peak_bytes: int) -> Iterator[str]:
    """A table, a value a row; empty where nothing is alive."""
    if not holding.largest:
        return
    yield "largest at the peak"
    rows = [_cells(one) for one in holding.largest]
    if holding.more:
        words = f"and {holding.more} more"
        rows.append((words, "", "", "", format_bytes(holding.more_bytes), _percent(holding.more_bytes / peak_bytes)))
    yield from _table(rows)


def _cells(one: Held) -> tuple[str, ...]:
    name = one.name if len(one.name) <= WIDEST else f"…{one.name[1 - WIDEST :]}"
    again = f"{one.operation}, recomputed" if one.recomputed else one.operation
    return name, again, one.segment, one.source, format_bytes(one.bytes), _percent(one.share)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as their widest cell, empty ones left out; the last two to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    right = len(widths) - 2
    for row in rows:
        cells = [
            text.rjust(width) if at >= right else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
            if width
        ]
        yield f"  {'  '.join(cells)}"
