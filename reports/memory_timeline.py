"""The live memory at each operation of a step, as text and as JSON.

    peak of temporaries  849.3 MiB
      at stablehlo.dot_general, operation 2210 of 4705
    device bytes         910.1 MiB
      = arguments 60.7 MiB + results 60.7 MiB + peak - aliased 60.6 MiB

The numbers come from `analysis/memory/timeline.py`; this module only groups and prints them. `memory_chart.py` draws
them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise

from ..analysis.memory.timeline import Timeline
from ..support.units import format_bytes
from .holding import as_dict, holding_of, lines_of
from .memory_chart import to_svg
from .memory_layers import ProgramStage, kinds_of, stages

__all__ = ["to_json", "to_svg", "to_text"]

ROWS = 12
CHART_HEIGHT = 8
EIGHTHS = " ▁▂▃▄▅▆▇█"


def to_json(timeline: Timeline, name: str = "") -> str:
    """Return the timeline as one line of JSON, with its totals and the values that are live at its peak. Sizes are in
    bytes."""
    totals = {total: getattr(timeline, total) for total in ("peak_bytes", "peak_index", "device_bytes")}
    named: dict[str, object] = {"name": name, "at_peak": as_dict(holding_of(timeline))}
    return json.dumps(named | totals | asdict(timeline)) + "\n"


def to_text(timeline: Timeline, width: int = 72, top_bytes: int | None = None) -> str:
    """Return the peak, the values that are live there, and a bar chart of live bytes in program order.

    Args:
        timeline: The timeline.
        width: Width of the chart in characters.
        top_bytes: The upper end of the chart's scale, so that several charts can have the same scale; by default, the
            peak.
    """
    if not timeline.operations:
        return "no operations\n"
    largest = list(lines_of(holding_of(timeline), timeline.peak_bytes))
    tables = [*alive_at_the_peak(timeline), "", *largest, *([""] if largest else [])]
    lines = [*totals(timeline), "", *tables, *chart(timeline, width, top_bytes)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def totals(timeline: Timeline) -> Iterator[str]:
    place = timeline.peak_index
    yield f"peak of temporaries  {format_bytes(timeline.peak_bytes)}"
    yield f"  at {timeline.operations[place]}, operation {place + 1} of {len(timeline.operations)}"
    yield f"device bytes         {format_bytes(timeline.device_bytes)}"
    yield (
        f"  = arguments {format_bytes(timeline.argument_bytes)} + results {format_bytes(timeline.result_bytes)}"
        f" + peak - aliased {format_bytes(timeline.aliased_bytes)}"
    )


def alive_at_the_peak(timeline: Timeline) -> Iterator[str]:
    """Yield the lines of a table of live bytes by kind, and by segment or module. The rows add up to the peak."""
    groups: Counter[tuple[str, str]] = Counter()
    for buffer, kind in zip(timeline.buffers, kinds_of(timeline), strict=True):
        if buffer.first <= timeline.peak_index <= buffer.last:
            groups[buffer.segment or "outside segments", kind.value] += buffer.bytes
    inner = timeline.inner_bytes[timeline.peak_index]
    if inner:
        groups[f"inside {timeline.operations[timeline.peak_index]}", ""] = inner
    ordered = groups.most_common()
    rows = ordered[:ROWS]
    if len(ordered) > ROWS:
        rows.append(((f"{len(ordered) - ROWS} more", ""), sum(size for _, size in ordered[ROWS:])))
    yield "alive at the peak"
    first, second = (max((len(group[column]) for group, _ in rows), default=0) for column in (0, 1))
    for (segment, kind), size in rows:
        share = 100 * size / max(timeline.peak_bytes, 1)
        yield f"  {segment:{first}}  {kind:{second}}  {format_bytes(size):>10}  {share:5.1f} %"


def chart(timeline: Timeline, width: int, top_bytes: int | None = None) -> Iterator[str]:
    """Yield the lines of a bar chart of live bytes in program order, with the names of the stages below.

    Each column shows the maximum of its operations.
    """
    highest = top_bytes or timeline.peak_bytes
    top = format_bytes(highest)
    count = len(timeline.operations)
    columns = width - len(top) - 2
    heights = [
        -(-8 * CHART_HEIGHT * max(timeline.live_bytes[start : max(end, start + 1)]) // max(highest, 1))
        for start, end in pairwise(column * count // columns for column in range(columns + 1))
    ]
    for row in reversed(range(CHART_HEIGHT)):
        label = top if row == CHART_HEIGHT - 1 else "0 B" if row == 0 else ""
        bars = "".join(EIGHTHS[min(max(height - 8 * row, 0), 8)] for height in heights)
        yield f"{label:>{len(top)}} │{bars}"
    yield " " * (len(top) + 1) + "└" + "".join(ruler(stage, count, columns) for stage in stages(timeline))


def ruler(stage: ProgramStage, count: int, columns: int) -> str:
    """Return the part of the chart's lower edge below `stage`. It is a line that ends in a mark, with the stage's name
    if there is room."""
    first, end = (-(-place * columns // count) for place in (stage.start, stage.end))
    room = end - first
    name = f" {stage.name} " if room > len(stage.name) + 2 else ""
    return name.center(room - 1, "─") + "┴" if room else ""
