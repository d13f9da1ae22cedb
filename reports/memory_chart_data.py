"""The data of a memory chart for JSON: the layers with their colours, and the largest values of each layer.

A large step has more operations than a screen has columns. Each column of the chart shows the operation with the most
live bytes in the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

from ..analysis.memory.timeline import Buffer, Timeline
from .colours import BAND_COLOURS, as_hexadecimal, blend
from .memory_layers import Band, BandKind, bands, kinds_of, shorten_segments, stages

COLUMNS = 500
VALUES = 3000
"""The maximum number of values that a page lists. The largest ones are listed."""


def chart_data(timeline: Timeline) -> dict[str, Any]:
    """Return the chart as data for JSON. Sizes are in bytes; `bounds` and `shown` are operation indices."""
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
        "layers": [_layer_data(layer, colour, shown) for layer, colour in zip(layers, _colours(layers), strict=True)],
        "values": _values(by_module, layers),
    }


def columns_of(timeline: Timeline, most: int) -> tuple[list[int], list[int]]:
    """Divide the operations into at most `most` columns. Return the bounds of the columns, and for each column the
    operation at which the most bytes are live."""
    count = len(timeline.operations)
    columns = min(count, most)
    bounds = [column * count // columns for column in range(columns + 1)] if columns else [0]
    return bounds, [_highest(timeline, range(*pair)) for pair in pairwise(bounds)]


def _highest(timeline: Timeline, operations: range) -> int:
    """Return the operation with the most live bytes. In a tie, prefer the peak of the timeline, then the first
    operation."""
    highest = max(operations, key=timeline.live_bytes.__getitem__)
    peak = timeline.peak_index
    return peak if peak in operations and timeline.live_bytes[highest] == timeline.peak_bytes else highest


def _by_module(timeline: Timeline) -> Timeline:
    """Return the timeline with segments replaced by modules, if any module has a name."""
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
    """Return the colour of each layer. Layers of saved values go from light to dark in program order. The colour of
    every other layer depends only on its kind.
    """
    count = max(sum(layer.kind is BandKind.SAVED for layer in layers) - 1, 1)
    blends = [as_hexadecimal(blend(number / count)) for number in range(count + 1)]
    return [BAND_COLOURS.get(layer.kind) or blends[index] for index, layer in enumerate(layers)]


def _values(timeline: Timeline, layers: Sequence[Band]) -> list[dict[str, Any]]:
    """Return the largest values, each with the index of its layer."""
    short = shorten_segments(buffer.segment for buffer in timeline.buffers)
    number = {(layer.kind, layer.segment): at for at, layer in enumerate(layers)}
    rows = list[tuple[Buffer, int]]()
    for buffer, kind in zip(timeline.buffers, kinds_of(timeline), strict=True):
        segment = short[buffer.segment] if kind is BandKind.SAVED else ""
        rows.append((buffer, number.get((kind, segment), len(layers) - 1)))
    rows.sort(key=lambda row: -row[0].bytes)
    return [{**asdict(buffer), "layer": layer} for buffer, layer in rows[:VALUES] if buffer.bytes]
