"""Plot memory timelines: the live bytes in program order, with one panel for each program, all on the same scale."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..analysis.memory.timeline import Timeline
from ..support.units import format_bytes, unit_for
from .colours import BAND_COLOURS, Colour, blend
from .memory_layers import Band, BandKind, bands, stages

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT = "#222222", "#777777"
LABELS = {BandKind.RECOMPUTED: "recomputed copies", BandKind.GRADIENT: "gradients", BandKind.OTHER: "other temporaries"}
COLUMNS = 450
# A stage gets a label only if it takes at least this share of the width.
NARROW = 0.085
STYLE = {
    "svg.hashsalt": "recompute",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.8,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "text.color": INK,
}


NEEDS_MATPLOTLIB = (
    "{formats} matplotlib: python -m pip install '.[plot]' in a checkout, or 'xdsl-recompute[plot]'; {others} do not"
)


def to_svg(timelines: Sequence[tuple[str, Timeline]], title: str) -> str:
    """Plot a panel for each named timeline. Return SVG text that is identical on every run.

    Ratios are relative to the first timeline.

    Raises:
        ImportError: matplotlib is not installed; the message explains how to install it.
        ValueError: `timelines` is empty.
    """
    if not timelines:
        raise ValueError("timelines: expected at least one timeline")
    buffer = BytesIO()
    with style():
        figure(timelines, title).savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue().decode()


def style() -> Any:
    """Return a context with matplotlib's defaults and `STYLE`, independent of the user's settings."""
    demand_matplotlib()
    from matplotlib import style

    return style.context(["default", STYLE])


def demand_matplotlib(formats: str = "SVG and PNG need", others: str = "HTML and JSON") -> None:
    """Raise `ImportError`, with an installation hint, if matplotlib is not installed."""
    try:
        import matplotlib.style  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise ImportError(NEEDS_MATPLOTLIB.format(formats=formats, others=others)) from error


@dataclass(frozen=True)
class Scale:
    """The vertical scale, its unit and the colours. All panels share them."""

    operations: int
    peak_bytes: int
    unit: int  # bytes per unit of the vertical axis
    unit_name: str
    colours: dict[str, Colour]  # of the segments
    first_name: str
    first_peak_bytes: int

    def colour(self, layer: Band) -> Colour | str:
        return self.colours[layer.segment] if layer.kind is BandKind.SAVED else BAND_COLOURS[layer.kind]


def figure(timelines: Sequence[tuple[str, Timeline]], title: str) -> Figure:
    from matplotlib.figure import Figure

    layers = [bands(timeline) for _, timeline in timelines]
    scale = scale_of(timelines, layers)
    height = 1.15 + 2.35 * len(timelines)
    drawing = Figure(figsize=(9, height), facecolor="white")
    axes = drawing.subplots(len(timelines), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    drawing.subplots_adjust(left=0.085, right=0.985, top=1 - 0.95 / height, bottom=0.5 / height, hspace=0.3)
    drawing.text(0.02, 1 - 0.14 / height, title, fontsize=12, fontweight="bold", va="top")
    legend(drawing, scale, {layer.kind for panel in layers for layer in panel if any(layer.live_bytes)}, height)
    for number, (name, timeline) in enumerate(timelines):
        draw(axes[number], name, timeline, layers[number], scale)
        draw_peak(axes[number], timeline, scale, compared=number > 0)
        if number > 0:
            draw_first_peak(axes[number], timeline, scale)
    axes[-1].set_xlabel("operations in program order", color=FAINT)
    return drawing


def scale_of(timelines: Sequence[tuple[str, Timeline]], layers: Sequence[Sequence[Band]]) -> Scale:
    peak = max(timeline.peak_bytes for _, timeline in timelines)
    unit, unit_name = unit_for(peak)
    segments = list(dict.fromkeys(layer.segment for panel in layers for layer in panel if layer.kind is BandKind.SAVED))
    segments.sort(key=lambda segment: segment == "")
    steps = max(len(segments) - 1, 1)
    return Scale(
        operations=max(len(timeline.operations) for _, timeline in timelines),
        peak_bytes=peak,
        unit=unit,
        unit_name=unit_name,
        colours={segment: blend(index / steps) for index, segment in enumerate(segments)},
        first_name=timelines[0][0],
        first_peak_bytes=timelines[0][1].peak_bytes,
    )


def legend(drawing: Figure, scale: Scale, kinds: set[BandKind], height: float) -> None:
    """Draw a legend entry for each kind of band. All segments share one entry, a strip of their colours in program
    order."""
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.patches import Patch

    handles: list[Any] = []
    labels: list[str] = []
    segments = list(scale.colours)
    if segments:
        handles.append(tuple(Patch(facecolor=colour) for colour in scale.colours.values()))
        labels.append(f"saved for the backward ({names_of(segments)})")
    for kind, colour in BAND_COLOURS.items():
        if kind in kinds:
            handles.append(Patch(facecolor=colour))
            labels.append(LABELS[kind])
    drawing.legend(
        handles,
        labels,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
        loc="upper left",
        bbox_to_anchor=(0.012, 1 - 0.38 / height),
        ncols=len(handles),
        frameon=False,
        columnspacing=1.6,
        handlelength=2.2,
        borderpad=0.2,
    )


def names_of(segments: Sequence[str]) -> str:
    """Return a phrase with the first and the last segment name, and with "the rest" if some values are outside all
    segments."""
    named = [shorten(segment) for segment in segments if segment]
    ends = " … ".join(dict.fromkeys((*named[:1], *named[-1:])))
    return ", ".join(filter(None, (ends, "the rest" if "" in segments else "")))


def shorten(name: str, limit: int = 20) -> str:
    return name if len(name) <= limit else f"…{name[1 - limit :]}"


def draw(axes: Axes, name: str, timeline: Timeline, layers: Sequence[Band], scale: Scale) -> None:
    axes.set_title(f"{name}, {len(timeline.operations):,} operations", loc="left", fontsize=10, pad=4)
    axes.set_xlim(0, scale.operations)
    axes.set_ylim(0, max(1.28 * scale.peak_bytes / scale.unit, 1))
    axes.set_ylabel(f"{scale.unit_name} live", color=FAINT)
    draw_stages(axes, timeline)
    draw_layers(axes, timeline, layers, scale)


def draw_stages(axes: Axes, timeline: Timeline) -> None:
    axes.axvline(len(timeline.operations), color=FAINT, linewidth=0.8, zorder=1)
    for number, stage in enumerate(stages(timeline)):
        if number % 2:
            axes.axvspan(stage.start, stage.end, color="#f3f3f3", linewidth=0, zorder=0)
        if stage.end - stage.start > NARROW * axes.get_xlim()[1]:
            middle = (stage.start + stage.end) / 2
            place = axes.get_xaxis_transform()
            axes.text(middle, 0.975, stage.name, transform=place, ha="center", va="top", color=FAINT)


def draw_layers(axes: Axes, timeline: Timeline, layers: Sequence[Band], scale: Scale) -> None:
    """Draw each layer from its upper edge down to zero, and lower layers on top of it, so that no seams are visible."""
    bounds, columns = columns_of(timeline)
    total = [timeline.live_bytes[column] for column in columns]
    for layer in reversed(layers):
        own = [layer.live_bytes[column] for column in columns]
        # Skip operations at which the layer is empty: its colour would show along the edge of the layer below.
        heights = [size / scale.unit if part else math.nan for size, part in zip(total, own, strict=True)]
        axes.stairs(heights, bounds, fill=True, color=scale.colour(layer), linewidth=0, zorder=2)
        total = [size - part for size, part in zip(total, own, strict=True)]


def columns_of(timeline: Timeline) -> tuple[list[int], list[int]]:
    """Return the bounds of at most `COLUMNS` columns of operations, and each column's operation with the most live
    bytes."""
    count = len(timeline.operations)
    columns = min(count, COLUMNS)
    bounds = [column * count // columns for column in range(columns + 1)]
    highest = [max(range(*pair), key=timeline.live_bytes.__getitem__) for pair in pairwise(bounds)]
    return bounds, highest


def draw_peak(axes: Axes, timeline: Timeline, scale: Scale, compared: bool) -> None:
    """Draw the peak as a dashed line with a label. If `compared` is set, the label gives the ratio to the first
    program's peak.
    """
    text = f"peak {format_bytes(timeline.peak_bytes)}"
    if compared:
        ratio = timeline.peak_bytes / max(scale.first_peak_bytes, 1)
        text += f" = {ratio:.2f} × {format_bytes(scale.first_peak_bytes)}"
    height = timeline.peak_bytes / scale.unit
    axes.hlines(height, 0, len(timeline.operations), colors=INK, linewidth=0.9, linestyle=(0, (5, 3)), zorder=4)
    note(axes, text, height, fontweight="bold")


def draw_first_peak(axes: Axes, timeline: Timeline, scale: Scale) -> None:
    """Draw the first program's peak as a dotted line, with a label unless it would overlap the label of the other
    peak."""
    height = scale.first_peak_bytes / scale.unit
    axes.axhline(height, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)), zorder=3)
    if abs(scale.first_peak_bytes - timeline.peak_bytes) > scale.peak_bytes / 8:
        note(axes, f"{scale.first_name} {format_bytes(scale.first_peak_bytes)}", height, color=FAINT)


def note(axes: Axes, text: str, height: float, **look: Any) -> None:
    """Draw text just above the left end of a horizontal line."""
    axes.annotate(text, (0, height), xytext=(5, 3), textcoords="offset points", zorder=5, **look)
