"""A report in words, and as a page for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from ...analysis.explain.saved_values import SavedValue
from ...reports.memory_chart import to_svg
from ...reports.memory_timeline import alive_at_the_peak, chart
from ...support.units import format_bytes

if TYPE_CHECKING:
    from .report import Needs, Report

_MOST = 8
"""So many segments and values are named; the others are counted."""
_WIDTH = 72


def to_text(report: Report) -> str:
    remarks = [f"  {remark}" for remark in report.remarks]
    parts = [[verdict(report)], list(table(report)), list(_kept(report)), list(_pictures(report)), remarks]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def to_html(report: Report) -> str:
    """Needs matplotlib for the picture; without it the words are all."""
    parts = [[verdict(report)], list(table(report)), list(_kept(report)), [str(remark) for remark in report.remarks]]
    words = "\n\n".join("\n".join(lines) for lines in parts if lines)
    return f"<pre>{escape(words)}</pre>{_svg(report)}"


def verdict(report: Report) -> str:
    """`step: 140.9 MiB -> 19.5 MiB of temporaries (-86 %), +21 % FLOPs, proved equal`"""
    plain, less = report.plain, report.less
    if plain.temporaries is None or less.temporaries is None:
        return f"{report.name}: the compiler does not report temporaries"
    before = format_bytes(plain.temporaries)
    if report.why is not None:
        return f"{report.name}: {before} of temporaries, nothing recomputed"
    parts = [
        f"{before} -> {format_bytes(less.temporaries)} of temporaries{_change(plain.temporaries, less.temporaries)}"
    ]
    if plain.flops and less.flops is not None:
        parts.append(f"{less.flops / plain.flops - 1:+.0%} FLOPs".replace("%", " %"))
    parts.append("proved equal" if report.proved else "not proved")
    return f"{report.name}: {', '.join(parts)}"


def _change(before: int, after: int) -> str:
    return f" ({after / before - 1:+.0%})".replace("%", " %") if before else ""


def table(report: Report) -> Iterator[str]:
    """What both need, whether it fits, and what is computed again."""
    plain, less = report.plain, report.less
    yield f"{report.name:<16}{'plain':>14}{'recomputed':>14}{'ratio':>8}"
    yield _row("temporaries", plain.temporaries, less.temporaries, format_bytes)
    yield _row("on the device", plain.device_bytes, less.device_bytes, format_bytes)
    yield _row("FLOPs", plain.flops, less.flops, "{:.3g}".format)
    if report.budget is not None:
        yield f"{'fits in ' + format_bytes(report.budget):<16}{_fits(report, plain):>14}{_fits(report, less):>14}"
    yield f"runs: {report.way.value}"
    yield from _measured(report)
    yield from (f"  compiled: {one}" for one in report.rounds)
    yield report.why or f"computed again: {_again(report)}"


def _measured(report: Report) -> Iterator[str]:
    """The temporaries of each way, for which the one that runs was chosen."""
    for way, size in report.measured:
        said = "not told by the compiler" if size is None else format_bytes(size)
        yield f"  {said:>10}  {way.value}"


def _row(what: str, before: float | None, after: float | None, said: Callable[[Any], str]) -> str:
    if before is None or after is None:
        return f"{what:<16}{'not told by the compiler':>28}"
    ratio = f"{after / before:.3f}" if before else "-"
    return f"{what:<16}{said(before):>14}{said(after):>14}{ratio:>8}"


def _fits(report: Report, needs: Needs) -> str:
    size = needs.device_bytes
    return "unknown" if size is None or report.budget is None else "yes" if size <= report.budget else "no"


def _again(report: Report) -> str:
    """`12 operations: layer1 4, layer0 4, layer2 4`."""
    named = [f"{segment} {count}" for segment, count in report.again[:_MOST]]
    rest = [f"and {len(report.again) - _MOST} more"] if len(report.again) > _MOST else []
    return f"{report.copies} operations: {', '.join([*named, *rest])}" if report.copies else "0 operations"


def _kept(report: Report) -> Iterator[str]:
    """What is still kept for the backward pass, one line for all that is made in one place and kept for one reason."""
    if not report.kept:
        return
    yield f"kept for the backward pass: {format_bytes(sum(one.bytes for one in report.kept))}"
    alike = dict[tuple[str, str, str | None], list[SavedValue]]()
    for value in report.kept:
        alike.setdefault((value.operation, value.position, value.reason), []).append(value)
    groups = sorted(alike.values(), key=_bytes, reverse=True)
    for group in groups[:_MOST]:
        segments = list(dict.fromkeys(value.segment for value in group if value.segment))
        place = f" in {', '.join(segments[:2])}" if segments else ""
        rest = f" and {len(segments) - 2} more" if len(segments) > 2 else ""
        one = group[0]
        yield f"  {format_bytes(_bytes(group)):>10}  {one.operation}{place}{rest}, {one.position}: {one.reason}"
    if len(groups) > _MOST:
        yield f"  {format_bytes(sum(map(_bytes, groups[_MOST:]))):>10}  in {len(groups) - _MOST} more places"


def _bytes(values: Iterable[SavedValue]) -> int:
    return sum(value.bytes for value in values)


def _pictures(report: Report) -> Iterator[str]:
    top = max((timeline.peak_bytes for _, timeline in report.timelines), default=0)
    for name, timeline in report.timelines:
        if timeline.operations:
            yield f"{name}, temporaries in program order by the model of XLA:CPU"
            yield from chart(timeline, _WIDTH, top)
            yield from alive_at_the_peak(timeline)


def _svg(report: Report) -> str:
    if not report.timelines:
        return ""
    try:
        return to_svg(report.timelines, report.name)
    except ImportError:
        return ""
