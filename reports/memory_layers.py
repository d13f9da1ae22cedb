"""Layers of a memory chart: live bytes by kind of value at each operation.

The kinds are values saved for the backward pass (by segment), recomputed copies, gradients, and other values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from ..analysis.memory.timeline import Buffer, Timeline
from ..support.phase import FORWARD_PHASES, Phase


class BandKind(Enum):
    SAVED = "saved for the backward"
    RECOMPUTED = "recomputed"
    GRADIENT = "gradient"
    FORWARD = "forward only"
    UPDATE = "update"
    OTHER = "other"


@dataclass(frozen=True)
class Band:
    """A layer of a chart: the live bytes of one kind of value at each operation.

    Saved values have one layer for each segment.
    """

    kind: BandKind
    segment: str
    live_bytes: tuple[int, ...]


@dataclass(frozen=True)
class ProgramStage:
    """A stage of the program, such as the forward pass: the operations from `start` up to, but not including, `end`."""

    name: str
    start: int
    end: int


def kinds_of(timeline: Timeline, buffers: Sequence[Buffer] | None = None) -> list[BandKind]:
    """Return the kind of each buffer.

    A forward value is classified as saved if a gradient operation of the backward pass runs while the value is live.
    Gradient operations that the schedule runs early, during the forward pass, are ignored.

    `buffers`: the buffers to classify; by default, the temporaries of the timeline.
    """
    gradients_until = list(accumulate((phase == Phase.GRADIENT for phase in timeline.phases), initial=0))
    start = backward_start(timeline)
    by_phase = {Phase.GRADIENT.value: BandKind.GRADIENT, Phase.UPDATE.value: BandKind.UPDATE}
    kinds: list[BandKind] = []
    for buffer in timeline.buffers if buffers is None else buffers:
        if buffer.recomputed:
            kinds.append(BandKind.RECOMPUTED)
        elif buffer.phase in FORWARD_PHASES:
            saved = gradients_until[buffer.last + 1] > gradients_until[max(buffer.first, start)]
            kinds.append(BandKind.SAVED if saved else BandKind.FORWARD)
        else:
            kinds.append(by_phase.get(buffer.phase, BandKind.OTHER))
    return kinds


def backward_start(timeline: Timeline) -> int:
    """Return the position at which the backward pass begins.

    A schedule may run some gradient operations early and some forward operations late. Therefore, choose the position
    with the fewest operations on the wrong side, and move it to the next gradient operation or, if there is none,
    directly after the last one.
    """
    gradients = [index for index, phase in enumerate(timeline.phases) if phase == Phase.GRADIENT]
    end = gradients[-1] + 1 if gradients else len(timeline.phases)
    misplaced = accumulate(
        [(phase == Phase.GRADIENT) - (phase in FORWARD_PHASES) for phase in timeline.phases], initial=0
    )
    boundary = min(enumerate(misplaced), key=lambda place: place[1])[0]
    return next((index for index in gradients if index >= boundary), end)


def bands(timeline: Timeline) -> list[Band]:
    """Return the layers from the bottom up; at each operation, they add up to the live bytes.

    Within a kind, values outside segments are drawn above values in segments.
    """
    short = shorten_segments(buffer.segment for buffer in timeline.buffers)
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


def shorten_segments(segments: Iterable[str]) -> dict[str, str]:
    """Map each segment path to a shorter path that ends at the outermost level at which the paths differ.

    For example, `model/block0/mlp` becomes `model/block0`.
    """
    paths = {segment: segment.split("/") for segment in segments}
    level = dividing_level(paths)
    return {segment: "/".join(path[:level]) for segment, path in paths.items()}


def dividing_level(segments: Iterable[str]) -> int:
    """Return the outermost level, counted from 1, at which the paths differ; the deepest level if they never do."""
    named = [segment.split("/") for segment in segments if segment]
    deepest = max(map(len, named), default=0)
    return next((d for d in range(1, deepest) if len({tuple(path[:d]) for path in named}) > 1), deepest)


def stages(timeline: Timeline) -> list[ProgramStage]:
    """Split a program into stages: forward pass, backward pass up to the last gradient operation, and update.

    A program without gradient operations is a single stage, `step`.
    """
    count = len(timeline.phases)
    gradients = [index for index, phase in enumerate(timeline.phases) if phase == Phase.GRADIENT]
    if not gradients:
        return [ProgramStage("step", 0, count)] if count else []
    start, end = backward_start(timeline), gradients[-1] + 1
    all_stages = (
        ProgramStage("forward", 0, start),
        ProgramStage("backward", start, end),
        ProgramStage("update", end, count),
    )
    return [stage for stage in all_stages if stage.start < stage.end]
