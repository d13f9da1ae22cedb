"""Plot a trade-off curve: plans, lower bounds, the gap between them, and the plans of other planners."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from ..support.units import format_bytes, unit_for
from .curve import Curve, Marker, Point
from .memory_chart import FAINT, INK, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEST, PROVED, GAP = "#0d4079", "#e69f00", "#f6dca8"
SHAPES = "Ds^vPX*"
"""Marker shapes, one for each planner, so that planners can be distinguished without colour."""
ROOM = 1.06


def to_svg(curves: Sequence[Curve], title: str) -> str:
    """Plot a panel for each curve. Return SVG text that is identical on every run.

    Raises:
        ImportError: matplotlib is not installed; the message explains how to install it.
        ValueError: `curves` is empty.
    """
    return _draw(curves, title, "svg").decode()


def to_png(curves: Sequence[Curve], title: str) -> bytes:
    """Draw the chart of `to_svg` as a PNG image, 1350 pixels wide. The errors are the same as for `to_svg`."""
    return _draw(curves, title, "png")


def _draw(curves: Sequence[Curve], title: str, kind: str) -> bytes:
    if not curves:
        raise ValueError("curves: expected at least one curve")
    buffer = BytesIO()
    with style():
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {}
        figure(curves, title).savefig(buffer, format=kind, dpi=150, metadata=metadata)
    return buffer.getvalue()


def figure(curves: Sequence[Curve], title: str) -> Figure:
    from matplotlib.figure import Figure

    height = 0.55 + 3.6 * len(curves)
    drawing = Figure(figsize=(9, height), facecolor="white")
    panels = drawing.subplots(len(curves), 1, squeeze=False)[:, 0]
    drawing.subplots_adjust(left=0.075, right=0.985, top=1 - 0.75 / height, bottom=0.5 / height, hspace=0.4)
    drawing.text(0.02, 1 - 0.14 / height, title, fontsize=12, fontweight="bold", va="top")
    for axes, curve in zip(panels, curves, strict=True):
        draw(axes, curve)
    return drawing


def draw(axes: Axes, curve: Curve) -> None:
    unit, unit_name = unit_for(curve.plain_peak_bytes)
    panel_title = f"{curve.name}: {format_bytes(curve.plain_peak_bytes)} unchanged"
    axes.set_title(panel_title, loc="left", fontsize=10, pad=4)
    axes.set_xlabel(f"budget, {unit_name}", color=FAINT)
    axes.set_ylabel("extra work, % of the step", color=FAINT)
    axes.set_xlim(0, ROOM * curve.plain_peak_bytes / unit)
    highest = max([1e-6, *(point.percent for point in (*curve.points, *curve.markers))])
    axes.set_ylim(-0.04 * highest, 1.12 * highest)
    if curve.minimum_bytes:
        _draw_minimum(axes, curve, unit)
    _draw_points(axes, curve.points, unit)
    for number, name in enumerate(dict.fromkeys(marker.name for marker in curve.markers)):
        shape = SHAPES[number % len(SHAPES)]
        _draw_marker(axes, [marker for marker in curve.markers if marker.name == name], name, shape, unit)
    if curve.refused:
        places = [refused.budget_bytes / unit for refused in curve.refused]
        axes.plot(places, [0] * len(places), "x", color="#b00020", clip_on=False, zorder=4, label="no plan")
    axes.legend(loc="best", frameon=False)


def _draw_minimum(axes: Axes, curve: Curve, unit: int) -> None:
    """Shade the range of budgets below the proven lower bound on the peak."""
    least = curve.minimum_bytes / unit
    axes.axvspan(0, least, color="#ececec", linewidth=0, zorder=0)
    axes.annotate(
        f"no plan below {format_bytes(curve.minimum_bytes)} (proved)",
        (least, 0.5),
        xycoords=("data", "axes fraction"),
        xytext=(-4, 0),
        textcoords="offset points",
        rotation=90,
        ha="right",
        va="center",
        color=FAINT,
        fontsize=8,
    )


def _draw_points(axes: Axes, points: Sequence[Point], unit: int) -> None:
    if not points:
        return
    budgets = [point.budget_bytes / unit for point in points]
    costs, bounds = [point.percent for point in points], [point.bound_percent or 0.0 for point in points]
    is_proved = all(point.bound_percent is not None for point in points)
    if is_proved:
        label = f"gap, at most {max(cost - bound for cost, bound in zip(costs, bounds, strict=True)):.2g} points"
        axes.fill_between(budgets, bounds, costs, color=GAP, linewidth=0, zorder=1, label=label)
    axes.plot(budgets, costs, "o-", color=BEST, markersize=3.5, linewidth=1.2, zorder=3, label="best plan found")
    if is_proved:
        axes.plot(budgets, bounds, "--", color=PROVED, linewidth=1.4, zorder=4, label="proven lower bound")


def _draw_marker(axes: Axes, markers: Sequence[Marker], name: str, shape: str, unit: int) -> None:
    across, up = [marker.peak_bytes / unit for marker in markers], [marker.percent for marker in markers]
    axes.plot(across, up, shape, markerfacecolor="none", markeredgecolor=INK, markersize=5.5, zorder=4, label=name)
