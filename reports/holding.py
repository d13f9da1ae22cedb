"""A table of the largest live values at the peak, by name and source line. The last line gives the number and the size
of all smaller values.

largest at the peak
  %h   stablehlo.dot_general  block3  train.py:41:9   64.0 MiB   7.5 %
  and 310 more                                       785.3 MiB  92.5 %
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from ..analysis.memory.timeline import Timeline
from ..support.units import format_bytes

MAX_ROWS = 10
MAX_NAME_WIDTH = 44
"""Maximum length of a name. Longer ones are cut at the beginning, since the end of a path is its most specific part."""


@dataclass(frozen=True, kw_only=True)
class LiveBuffer:
    """A buffer that is live at the peak. `share`: its share of the peak, from 0 to 1."""

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
    """The buffers that are live at the peak.

    Attributes:
        largest: The largest buffers, in descending order of size.
        more: The number of smaller buffers, which are not listed. Memory that the operation at the peak uses internally
            is counted as one buffer.
        more_bytes: The total size of the smaller buffers.
    """

    largest: tuple[LiveBuffer, ...]
    more: int
    more_bytes: int


def holding_of(timeline: Timeline, most: int = MAX_ROWS) -> Holding:
    place, peak = timeline.peak_index, timeline.peak_bytes
    live = [buffer for buffer in timeline.buffers if buffer.first <= place <= buffer.last and buffer.bytes]
    # The sort is stable: of equally large buffers, the one that is defined first comes first.
    live.sort(key=lambda buffer: -buffer.bytes)
    largest = tuple(
        LiveBuffer(
            name=buffer.name,
            operation=buffer.label,
            segment=buffer.segment,
            phase=buffer.phase,
            recomputed=buffer.recomputed,
            source=buffer.source,
            bytes=buffer.bytes,
            share=buffer.bytes / max(peak, 1),
        )
        for buffer in live[:most]
    )
    inside = bool(timeline.inner_bytes) and timeline.inner_bytes[place] > 0
    more = len(live) - len(largest) + inside
    return Holding(largest, more, peak - sum(held.bytes for held in largest))


def as_dict(holding: Holding) -> dict[str, object]:
    return asdict(holding)


def lines_of(holding: Holding, peak_bytes: int) -> Iterator[str]:
    """Yield the lines of a table with one value per row; no lines if nothing is live."""
    if not holding.largest:
        return
    yield "largest at the peak"
    rows = [_cells(held) for held in holding.largest]
    if holding.more:
        label = f"and {holding.more} more"
        rows.append((label, "", "", "", format_bytes(holding.more_bytes), _percent(holding.more_bytes / peak_bytes)))
    yield from _table(rows)


def _cells(held: LiveBuffer) -> tuple[str, ...]:
    name = held.name if len(held.name) <= MAX_NAME_WIDTH else f"…{held.name[1 - MAX_NAME_WIDTH :]}"
    operation = f"{held.operation}, recomputed" if held.recomputed else held.operation
    return name, operation, held.segment, held.source, format_bytes(held.bytes), _percent(held.share)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align the columns of a table: the last two to the right, all preceding columns to the left. Empty columns are
    omitted."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    right = len(widths) - 2
    for row in rows:
        cells = [
            text.rjust(width) if at >= right else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
            if width
        ]
        yield f"  {'  '.join(cells)}"
