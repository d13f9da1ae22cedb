"""A memory timeline in layers: what is kept for the backward by region, recomputed copies, gradients, the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from ..analysis.liveness import Timeline

FORWARD_PHASES = ("primal", "residual")


class Kind(Enum):
    KEPT = "kept for the backward"
    RECOMPUTED = "recomputed"
    GRADIENT = "gradient"
    FORWARD = "forward only"
    UPDATE = "update"
    OTHER = "other"


@dataclass(frozen=True)
class Band:
    """One layer: how many bytes of this kind (and of this region, if it is `KEPT`) live at each operation."""

    kind: Kind
    region: str
    live_bytes: tuple[int, ...]


@dataclass(frozen=True)
class Stage:
    """The operations `start` up to `end` of the program: forward, backward or update."""

    name: str
    start: int
    end: int


def kinds_of(timeline: Timeline) -> list[Kind]:
    """The kind of each buffer. A forward value is kept if a gradient operation runs while it is alive."""
    gradients_until = list(accumulate((phase == "gradient" for phase in timeline.phases), initial=0))
    by_phase = {"gradient": Kind.GRADIENT, "update": Kind.UPDATE}
    kinds: list[Kind] = []
    for buffer in timeline.buffers:
        if buffer.recomputed:
            kinds.append(Kind.RECOMPUTED)
        elif buffer.phase in FORWARD_PHASES:
            kept = gradients_until[buffer.last + 1] > gradients_until[buffer.first]
            kinds.append(Kind.KEPT if kept else Kind.FORWARD)
        else:
            kinds.append(by_phase.get(buffer.phase, Kind.OTHER))
    return kinds


def bands(timeline: Timeline) -> list[Band]:
    """The layers from the bottom up, what is outside regions above them; together they are the live bytes."""
    short = shortened(buffer.region for buffer in timeline.buffers)
    count = len(timeline.operations)
    changes: dict[tuple[Kind, str], list[int]] = {}
    for buffer, kind in zip(timeline.buffers, kinds_of(timeline), strict=True):
        if kind in (Kind.KEPT, Kind.RECOMPUTED, Kind.GRADIENT):
            region = short[buffer.region] if kind is Kind.KEPT else ""
            change = changes.setdefault((kind, region), [0] * (count + 1))
            change[buffer.first] += buffer.bytes
            change[buffer.last + 1] -= buffer.bytes
    layers = [Band(kind, region, tuple(accumulate(change[:count]))) for (kind, region), change in changes.items()]
    layers.sort(key=lambda layer: (list(Kind).index(layer.kind), layer.region == ""))
    named = [sum(column) for column in zip(*(layer.live_bytes for layer in layers), strict=True)] or [0] * count
    rest = tuple(live - part for live, part in zip(timeline.live_bytes, named, strict=True))
    return [*layers, Band(Kind.OTHER, "", rest)]


def shortened(regions: Iterable[str]) -> dict[str, str]:
    """Each region path cut at the outermost level with two names: `model/block0/mlp` becomes `model/block0`."""
    paths = {region: region.split("/") for region in regions}
    named = [path for region, path in paths.items() if region]
    deepest = max(map(len, named), default=0)
    level = next((d for d in range(1, deepest) if len({tuple(path[:d]) for path in named}) > 1), deepest)
    return {region: "/".join(path[:level]) for region, path in paths.items()}


def stages(timeline: Timeline) -> list[Stage]:
    """Forward until the first gradient operation, backward until the last one, and the update after it."""
    count = len(timeline.phases)
    gradients = [index for index, phase in enumerate(timeline.phases) if phase == "gradient"]
    start, end = (gradients[0], gradients[-1] + 1) if gradients else (count, count)
    found = (Stage("forward", 0, start), Stage("backward", start, end), Stage("update", end, count))
    return [stage for stage in found if stage.start < stage.end]
