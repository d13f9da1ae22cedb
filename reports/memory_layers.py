"""The data of a chart of memory over a step: layers by column of operations, and the values of each layer.

A large step has more operations than a screen has columns, so each column shows the operation with the most live bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

from ..analysis.memory.timeline import Buffer, Timeline
from .memory_bands import Band, BandKind, bands, kinds_of, shortened, stages

COLUMNS = 500
VALUES = 3000
"""The maximum number of values that a page lists, the largest first."""
LIGHT, DARK = (150, 195, 230), (13, 64, 121)
COLOURS = {BandKind.RECOMPUTED: "#e69f00", BandKind.GRADIENT: "#8a8a8a", BandKind.OTHER: "#b9b9b9"}


def chart_data(timeline: Timeline) -> dict[str, Any]:
    """The chart as plain data for JSON. Sizes in bytes; `bounds` and `shown` are numbers of operations."""
    by_module = _by_module(timeline)
    bounds, shown = columns_of(by_module, COLUMNS)
    layers = bands(by_module)
    return {
        "operations": timeline.operations,
        "phases": timeline.phases,
        "bounds": bounds,
        "shown": shown,
        "live": [timeline.live_bytes[at] for at in shown],
        "inside": [timeline.inner_bytes[at] for at in shown],
        "live_peak": timeline.peak_bytes,
        "peak": timeline.peak_index,
        "stages": [asdict(stage) for stage in stages(timeline)],
        "layers": list(map(_layer_data, layers, _colours(layers), [shown] * len(layers))),
        "values": _values(by_module, layers),
    }


def columns_of(timeline: Timeline, most: int) -> tuple[list[int], list[int]]:
    """Bounds of at most `most` columns of operations, and for each column the operation with the most live bytes."""
    count = len(timeline.operations)
    columns = min(count, most)
    bounds = [column * count // columns for column in range(columns + 1)] if columns else [0]
    highest = [max(range(*pair), key=timeline.live_bytes.__getitem__) for pair in pairwise(bounds)]
    # The peak is shown even where another operation of its column needs as many bytes.
    peak = timeline.peak_index
    return bounds, [peak if timeline.live_bytes[at] == timeline.peak_bytes and _has(pair, peak) else at
                    for at, pair in zip(highest, pairwise(bounds), strict=True)]  # fmt: skip


def _has(pair: tuple[int, int], place: int) -> bool:
    return pair[0] <= place < pair[1]


def _by_module(timeline: Timeline) -> Timeline:
    """The timeline with the modules of its buffers in the place of their segments, if any module has a name."""
    if not any(buffer.module for buffer in timeline.buffers):
        return timeline
    return replace(timeline, buffers=tuple(replace(buffer, segment=buffer.module) for buffer in timeline.buffers))


def _layer_data(layer: Band, colour: str, shown: Sequence[int]) -> dict[str, Any]:
    return {"name": _name_of(layer), "colour": colour, "bytes": [layer.live_bytes[at] for at in shown]}


def _name_of(layer: Band) -> str:
    if layer.kind is BandKind.SAVED:
        return f"saved: {layer.segment or 'outside modules'}"
    return {BandKind.RECOMPUTED: "recomputed", BandKind.GRADIENT: "gradients"}.get(layer.kind, "other temporaries")


def _colours(layers: Sequence[Band]) -> list[str]:
    """Layers of saved values from light to dark in program order, the others by their kind."""
    count = max(sum(layer.kind is BandKind.SAVED for layer in layers) - 1, 1)
    blends = [_blend(number / count) for number in range(count + 1)]
    return [COLOURS.get(layer.kind) or blends[at] for at, layer in enumerate(layers)]


def _blend(share: float) -> str:
    red, green, blue = (round(light + share * (dark - light)) for light, dark in zip(LIGHT, DARK, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _values(timeline: Timeline, layers: Sequence[Band]) -> list[dict[str, Any]]:
    """The largest values, each with the number of its layer."""
    short = shortened(buffer.segment for buffer in timeline.buffers)
    number = {(layer.kind, layer.segment): at for at, layer in enumerate(layers)}
    rows = list[tuple[Buffer, int]]()
    for buffer, kind in zip(timeline.buffers, kinds_of(timeline), strict=True):
        segment = short[buffer.segment] if kind is BandKind.SAVED else ""
        rows.append((buffer, number.get((kind, segment), len(layers) - 1)))
    rows.sort(key=lambda row: -row[0].bytes)
    return [{**asdict(buffer), "layer": layer} for buffer, layer in rows[:VALUES] if buffer.bytes]
