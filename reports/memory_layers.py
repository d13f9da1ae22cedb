"""Layers of a memory chart: live bytes by kind of value at each operation, and the values in each layer.

The kinds are values saved for the backward pass (by segment), recomputed copies, gradients, and others. A large step
has more operations than a screen has columns, so each column shows its operation with the most live bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from itertools import accumulate, pairwise
from typing import Any

from ..analysis.memory.timeline import Buffer, Timeline

FORWARD_PHASES = ("primal", "residual")


class BandKind(Enum):
    SAVED = "saved for the backward"
    RECOMPUTED = "recomputed"
    GRADIENT = "gradient"
    FORWARD = "forward only"
    UPDATE = "update"
    OTHER = "other"


@dataclass(frozen=True)
class Band:
    """Layer of a chart: the live bytes of one kind of value at each operation. Saved values have a layer for each
    segment."""

    kind: BandKind
    segment: str
    live_bytes: tuple[int, ...]


@dataclass(frozen=True)
class ProgramStage:
    """Forward pass, backward pass or update: the operations from `start` up to, but not including, `end`."""

    name: str
    start: int
    end: int


def kinds_of(timeline: Timeline) -> list[BandKind]:
    """Return the kind of each buffer. A forward value counts as saved if a gradient operation runs while it is live."""
    gradients_until = list(accumulate((phase == "gradient" for phase in timeline.phases), initial=0))
    by_phase = {"gradient": BandKind.GRADIENT, "update": BandKind.UPDATE}
    kinds: list[BandKind] = []
    for buffer in timeline.buffers:
        if buffer.recomputed:
            kinds.append(BandKind.RECOMPUTED)
        elif buffer.phase in FORWARD_PHASES:
            saved = gradients_until[buffer.last + 1] > gradients_until[buffer.first]
            kinds.append(BandKind.SAVED if saved else BandKind.FORWARD)
        else:
            kinds.append(by_phase.get(buffer.phase, BandKind.OTHER))
    return kinds


def bands(timeline: Timeline) -> list[Band]:
    """Return the layers from the bottom up; at each operation they add up to the live bytes.

    Values outside segments are drawn above other values of their kind.
    """
    short = shortened(buffer.segment for buffer in timeline.buffers)
    count = len(timeline.operations)
    changes: dict[tuple[BandKind, str], list[int]] = {}
    for buffer, kind in zip(timeline.buffers, kinds_of(timeline), strict=True):
        if kind in (BandKind.SAVED, BandKind.RECOMPUTED, BandKind.GRADIENT):
            segment = short[buffer.segment] if kind is BandKind.SAVED else ""
            change = changes.setdefault((kind, segment), [0] * (count + 1))
            change[buffer.first] += buffer.bytes
            change[buffer.last + 1] -= buffer.bytes
    layers = [Band(kind, segment, tuple(accumulate(change[:count]))) for (kind, segment), change in changes.items()]
    layers.sort(key=lambda layer: (list(BandKind).index(layer.kind), layer.segment == ""))
    named = [sum(column) for column in zip(*(layer.live_bytes for layer in layers), strict=True)] or [0] * count
    others = tuple(live - part for live, part in zip(timeline.live_bytes, named, strict=True))
    return [*layers, Band(BandKind.OTHER, "", others)]


def shortened(segments: Iterable[str]) -> dict[str, str]:
    """Return each segment path, cut at the outermost level that has two names: `model/block0/mlp` becomes
    `model/block0`."""
    paths = {segment: segment.split("/") for segment in segments}
    named = [path for segment, path in paths.items() if segment]
    deepest = max(map(len, named), default=0)
    level = next((d for d in range(1, deepest) if len({tuple(path[:d]) for path in named}) > 1), deepest)
    return {segment: "/".join(path[:level]) for segment, path in paths.items()}


def stages(timeline: Timeline) -> list[ProgramStage]:
    """Split a program into stages: forward up to the first gradient operation, backward up to the last one, then the
    update."""
    count = len(timeline.phases)
    gradients = [index for index, phase in enumerate(timeline.phases) if phase == "gradient"]
    start, end = (gradients[0], gradients[-1] + 1) if gradients else (count, count)
    all_stages = (
        ProgramStage("forward", 0, start),
        ProgramStage("backward", start, end),
        ProgramStage("update", end, count),
    )
    return [stage for stage in all_stages if stage.start < stage.end]


COLUMNS = 500
VALUES = 3000
"""Maximum number of values on a page; the largest are listed."""
LIGHT, DARK = (150, 195, 230), (13, 64, 121)
COLOURS = {BandKind.RECOMPUTED: "#e69f00", BandKind.GRADIENT: "#8a8a8a", BandKind.OTHER: "#b9b9b9"}


def chart_data(timeline: Timeline) -> dict[str, Any]:
    """Return the chart as data for JSON. Sizes are in bytes; `bounds` and `shown` are operation numbers."""
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
    """Return the bounds of at most `most` columns of operations, and for each column its operation with the most live
    bytes."""
    count = len(timeline.operations)
    columns = min(count, most)
    bounds = [column * count // columns for column in range(columns + 1)] if columns else [0]
    highest = [max(range(*pair), key=timeline.live_bytes.__getitem__) for pair in pairwise(bounds)]
    # If several operations of a column have as many live bytes as the peak, show the peak itself.
    peak = timeline.peak_index
    return bounds, [peak if timeline.live_bytes[at] == timeline.peak_bytes and _has(pair, peak) else at
                    for at, pair in zip(highest, pairwise(bounds), strict=True)]  # fmt: skip


def _has(pair: tuple[int, int], place: int) -> bool:
    return pair[0] <= place < pair[1]


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
    """Return the colour of each layer: saved values from light to dark in program order, the others by kind."""
    count = max(sum(layer.kind is BandKind.SAVED for layer in layers) - 1, 1)
    blends = [_blend(number / count) for number in range(count + 1)]
    return [COLOURS.get(layer.kind) or blends[at] for at, layer in enumerate(layers)]


def _blend(share: float) -> str:
    red, green, blue = (round(light + share * (dark - light)) for light, dark in zip(LIGHT, DARK, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _values(timeline: Timeline, layers: Sequence[Band]) -> list[dict[str, Any]]:
    """Return the largest values, each with the number of its layer."""
    short = shortened(buffer.segment for buffer in timeline.buffers)
    number = {(layer.kind, layer.segment): at for at, layer in enumerate(layers)}
    rows = list[tuple[Buffer, int]]()
    for buffer, kind in zip(timeline.buffers, kinds_of(timeline), strict=True):
        segment = short[buffer.segment] if kind is BandKind.SAVED else ""
        rows.append((buffer, number.get((kind, segment), len(layers) - 1)))
    rows.sort(key=lambda row: -row[0].bytes)
    return [{**asdict(buffer), "layer": layer} for buffer, layer in rows[:VALUES] if buffer.bytes]
