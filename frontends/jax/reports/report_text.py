"""Print a report as text, short or in full, or as an HTML page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from html import escape
from typing import TYPE_CHECKING, Any

from ....analysis.explain.saved_values import SavedValue
from ....analysis.memory.timeline import Timeline
from ....analysis.step.descriptions import is_scope, without_loop_scopes
from ....planning.by_segment.numbered_segments import is_numbered, number_of_segment, numbered_segment
from ....reports import memory_chart, memory_html
from ....reports.by_module import OUTSIDE, ModuleRow
from ....reports.memory_html import PageFacts
from ....reports.memory_timeline import alive_at_the_peak, chart
from ....reports.wrapping import wrap_line
from ....support.counted import counted
from ....support.diagnostics import UNKNOWN, Remark, lines_of
from ....support.locations import base_name
from ....support.units import format_bytes
from ..compilation.choice import Variant
from ..messages.why_plain import reason_in, reason_in_model, remedy_in
from .device_part import bytes_per_device, whole_bytes

if TYPE_CHECKING:
    from .donation import Donation
    from .step_report import Needs, Report

_MOST = 8
"""The maximum number of segments, and of places, to list. Further ones are only counted."""
_MODULES, _PLACES = 5, 3
"""The maximum number of modules, and of saved values, in the short text."""
_INDENT = 14
"""The indentation of continuation lines of an entry that begins with a byte count."""
_WIDTH = 72
MOST_OF = 0.4
"""The share of the temporaries above which a single saved value is named as their cause.

Together with the values that are computed from it, such a value makes up most of the temporaries.
"""
_IN_PARTS = (
    "{operation} at {position} alone saves {size}: compute that part of the model in microbatches, with jax.lax.map or "
    "jax.lax.scan"
)
NEARLY, MUCH_CHEAPER = 1.1, 0.67
"""A plan is proposed if it needs at most the first multiple of the memory, and at most the second share of the extra
work."""
NOTABLE_WORK = 0.1
"""The minimum extra work, as a share of the step's work, at which a saving that is smaller than it is mentioned."""
_NEARLY_AS_SMALL = "budget={share} needs {size}, hardly more than {least}, at {work} of the extra work of this plan"
_LITTLE_SAVED = (
    '{extra} more FLOPs for {saved} less memory: policy="dots_saveable" saves the matrix products, which cost most of '
    "these FLOPs; budget=0.9 finds the least work that fits; jax.jit runs the plain step"
)
_LEAST = 'this is the least memory that the search finds; budget=0.5 or "8GiB" takes less extra work'
_LEAST_SO_FAR = (
    "this is the least memory that the search found before it was stopped: with a larger time_limit=, or without one, "
    "it may find a smaller plan"
)
_MERGED = (
    "next: the model's own jax.checkpoint is not needed: this step runs without its copies, and recomputes values of "
    "its own choice"
)
_LITTLE_LESS = 0.95
"""If the rewritten step needs more than this share of the plain step's bytes on the device, the first line says so,
since arguments and results are most of them."""
_DONATE = "next: {option} saves up to {size}; {caution}"
_IN_JSON = (
    "name", "fit", "plain", "less", "why", "copies", "proved", "kept", "modules", "budget", "budget_text", "refused",
    "rounds", "devices", "values_per_device", "segments", "places", "has_loops", "donation",
)  # fmt: skip
"""The fields of a report that JSON contains unchanged."""
_STORED = "stored after fusion"
"""The title of the table of modules: the bytes that the model of XLA:CPU stores."""
_NO_MODULES = (
    "no table of modules: no stored value belongs to a named module; name parts of the model with jax.named_scope or "
    "recompute.jax.block"
)
_QUOTED = re.compile(r"'([^']+)'")
_NOT_REPORTED = "not reported by the compiler"


def to_text(report: Report) -> str:
    """Return the report in about 25 lines of 100 columns: verdict, memory and work, modules and saved values."""
    kept = [part for line in _kept(report, _PLACES, base_name) for part in wrap_line(line, _INDENT)]
    parts = [_verdicts(report), list(needs(report)), list(_modules(report, _MODULES)), kept]
    return "\n".join(["\n\n".join("\n".join(lines) for lines in parts if lines), *next_steps(report)])


def to_details(report: Report) -> str:
    """Return the report in full, with the candidates, the copies by segment, memory over time, and the remarks."""
    remarks = [f"  {line}" for line in remark_lines(report)]
    modules = list(_modules(report, len(report.modules)))
    parts = [
        _verdicts(report),
        list(table(report)),
        modules,
        list(_kept(report, _MOST)),
        list(_charts(report)),
        remarks,
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def remark_lines(report: Report) -> list[str]:
    """Return the remarks, followed by the place in the model of each segment by structure that they name."""
    remarks = [remark if isinstance(remark, str) else _without_loop_names(remark) for remark in report.remarks]
    lines = [_QUOTED.sub(lambda name: f"'{without_loop_scopes(name[1])}'", line) for line in lines_of(remarks)]
    segments = [name for remark in report.remarks if isinstance(remark, Remark) for name in remark.segments]
    named = sorted({number for name in segments if (number := number_of_segment(name)) is not None})
    modules = {number: modules for name, modules in report.segments if (number := number_of_segment(name)) is not None}
    by_place = dict[str, list[str]]()
    for number in named if modules else ():
        by_place.setdefault(place_of_segment(number, modules), []).append(f"'{numbered_segment(number)}'")
    return [*lines, *(f"{', '.join(segments)}: {place}" for place, segments in by_place.items())]


def _without_loop_names(remark: Remark) -> Remark:
    """Return the remark with the name of a segment that only a loop names replaced by its place. Numbered segments keep
    their numbers."""
    return remark if any(map(is_numbered, remark.segments)) else replace(remark, reason=reason_in_model(remark))


def place_of_segment(number: int, modules: Mapping[int, Sequence[str]]) -> str:
    """Return the place in the model of a segment by structure. Such segments are numbered in program order.

    Args:
        number: The number of the segment.
        modules: The modules of each recomputed segment, by its number; at least one segment.
    """
    if number in modules:
        return f"{'at' if _is_line(modules[number][0]) else 'part of'} {' and '.join(modules[number])}"
    before = max((other for other in modules if other < number), default=None)
    after = min((other for other in modules if other > number), default=None)
    if after is None:
        return f"after {modules[max(modules)][-1]}"
    if before is None:
        return f"before {modules[after][0]}"
    first, last = modules[before][-1], modules[after][0]
    if first != last:
        return f"between {first} and {last}"
    return f"{'at' if _is_line(first) else 'part of'} {first}"


def _is_line(place: str) -> bool:
    """Return whether a place is a source line such as `train.py:41` rather than a module."""
    return place.rpartition(":")[2].isdigit()


def to_html(report: Report) -> str:
    """Return the report as an HTML page that contains its data and its script."""
    rows = report.modules if _has_named_modules(report) else ()
    modules = tuple((row.module, *_sizes(row)) for row in rows)
    numbers = (("", *_columns(report)), *_numbers(report))
    facts = PageFacts("\n".join(_verdicts(report)), numbers, modules, tuple(remark_lines(report)))
    return memory_html.to_html(report.timelines, report.name, facts)


def to_svg(report: Report) -> str:
    """Return a chart of the memory over time as SVG.

    Raises `ValueError` if the report has no timelines, and `ImportError` without matplotlib.
    """
    if not report.timelines:
        raise ValueError(f"{report.name}: the report has no chart, since nothing is recomputed")
    return memory_chart.to_svg(_by_module(report), report.name)


def to_json(report: Report) -> str:
    """Return the numbers of the report as JSON, with sizes in bytes and without the timelines."""
    facts = {"verdict": headline(report), "variant": report.variant.value}
    facts |= {"measured": {variant.value: size for variant, size in report.measured}}
    facts |= {"remarks": list(map(str, report.remarks)), "again": dict(report.again)}
    rest = {name: getattr(report, name) for name in _IN_JSON}
    return json.dumps(facts | rest, default=asdict, indent=1) + "\n"


def to_notebook(report: Report) -> str:
    """Return the HTML page in an iframe, which separates its styles and its script from the notebook."""
    return f'<iframe srcdoc="{escape(to_html(report))}" style="width: 100%; height: 900px; border: 0"></iframe>'


def headline(report: Report) -> str:
    """Return the first line of the report: for `recompute.jax.explain` whether the step fits, otherwise the saving."""
    return verdict(report) if report.fit is None else report.fit.text


def _verdicts(report: Report) -> list[str]:
    """Return the lines that state the saving, and for `recompute.jax.explain` first whether the step fits."""
    lines = [verdict(report)] if report.fit is None else [report.fit.text, verdict(report)]
    return [part for line in lines for part in wrap_line(line)]


def verdict(report: Report) -> str:
    """Return the saving in one line: `step: 140.9 MiB -> 19.5 MiB of temporaries (-86 %), +21 % FLOPs, proved
    equal`."""
    plain, less = report.plain, report.less
    if plain.temporaries is None or less.temporaries is None:
        return f"{report.name}: the compiler does not report temporaries"
    before = format_bytes(plain.temporaries)
    each = " per device" if report.devices > 1 else ""
    if report.why is not None and report.variant is not Variant.KEEPING:
        return f"{report.name}: {before} of temporaries{each}, nothing recomputed"
    if report.variant is Variant.KEEPING and plain.temporaries == less.temporaries:
        return f"{report.name}: {before} of temporaries{each}, recomputed only by its own jax.checkpoint"
    change = _change(plain.temporaries, less.temporaries)
    parts = [f"{before} -> {format_bytes(less.temporaries)} of temporaries{each}{change}"]
    on_device, less_on_device = plain.device_bytes or 0, less.device_bytes or 0
    if less.temporaries < plain.temporaries and less_on_device > _LITTLE_LESS * on_device:
        parts.append(f"but {_percent(on_device, less_on_device)} on the device")
    plain_flops, flops = report.flops
    if plain_flops and flops is not None:
        parts.append(f"{flops / plain_flops - 1:+.0%} FLOPs".replace("%", " %"))
    if report.variant is Variant.KEEPING:
        parts.append("by its own jax.checkpoint")
    else:
        parts.append("proved equal" if report.proved else "not proved")
    return f"{report.name}: {', '.join(parts)}"


def _change(before: int, after: int) -> str:
    return f" ({_percent(before, after)})" if before else ""


def _percent(before: int, after: int) -> str:
    return f"{after / before - 1:+.0%}".replace("%", " %")


def needs(report: Report) -> Iterator[str]:
    """Yield a table with the memory and FLOPs of both steps and whether they fit, then the variant that runs."""
    for quantity, plain, less, ratio in ((report.name, *_columns(report)), *_numbers(report)):
        yield f"{quantity:<16}{plain:>14}{less:>14}{ratio:>8}".rstrip()
    if report.refused:
        yield f"without the budget, a call runs: {report.variant.value}; with the budget, a call raises an error"
    else:
        yield f"{'runs' if report.fit is None else 'a call runs'}: {report.variant.value}"
    if report.fit is not None:
        yield "sizes: as the compiler reports them; on the device: temporaries, arguments and results"
    if report.executed_flops is not None:
        yield "FLOPs: counted in the program, all iterations of loops included"
    elif report.has_loops:
        yield "FLOPs: as the compiler counts them, the body of each loop once"
    elif report.fit is not None:
        yield "FLOPs: as the compiler counts them"
    if report.devices > 1:
        yield bytes_per_device(report.devices)
    if not report.values_per_device:
        yield from wrap_line(whole_bytes(report.devices))


def _columns(report: Report) -> tuple[str, str, str]:
    """Return the titles of the columns of `_numbers`."""
    is_rewritten = report.variant in (Variant.RECOMPUTED, Variant.MERGED)
    return "plain", "recomputed" if is_rewritten else "as it runs", "ratio"


def _numbers(report: Report) -> Iterator[tuple[str, str, str, str]]:
    """Yield rows of a quantity, its value for the plain step, its value for the step that runs, and their ratio."""
    plain, less = report.plain, report.less
    yield _row("temporaries", plain.temporaries, less.temporaries, format_bytes)
    yield _row("on the device", plain.device_bytes, less.device_bytes, format_bytes)
    yield _row("FLOPs", *report.flops, "{:.3g}".format)
    if report.budget is not None:
        label = f"fits in {report.budget_text or format_bytes(report.budget)}"
        yield label, _fits(report, plain), _fits(report, less), ""


def table(report: Report) -> Iterator[str]:
    """Yield the lines of `needs`, then all compiled variants and candidates, then the recomputed operations."""
    yield from needs(report)
    yield from _measured(report)
    yield from (f"  compiled: {candidate}" for candidate in report.rounds)
    if report.rounds and report.executed_flops is None:
        yield "  FLOPs of these candidates: counted in the program, before the compiler simplifies it"
    yield report.why or f"recomputed: {_recomputed(report)}"


def _modules(report: Report, most: int) -> Iterator[str]:
    """Yield a table of modules: the bytes saved for the backward pass before and after, and the recomputed bytes.

    If no stored value belongs to a named module, yield the reason instead. `most`: the maximum number of rows.
    """
    if not report.modules:
        return
    if not _has_named_modules(report):
        yield from wrap_line(_NO_MODULES)
        return
    for place in report.places:
        words, _, position = place.rpartition(" ")
        yield from wrap_line(f"modules {words} {base_name(position)}, in one iteration:")
    shown = sorted(report.modules, key=_bytes_of)[-most:]
    rows = [row for row in report.modules if row in shown]
    others = [row for row in report.modules if row not in shown]
    width = min(40, max(map(len, (_STORED, *(row.module for row in rows)))))
    yield f"{_STORED:<{width}}{'saved, plain':>15}{'saved now':>12}{'recomputed':>12}"
    yield from (_module_row(row, width) for row in rows)
    if others:
        sums = [sum(column) for column in zip(*map(_sizes, others), strict=True)]
        yield _module_row(ModuleRow(f"{len(others)} more", *sums), width)


def _has_named_modules(report: Report) -> bool:
    return any(row.module != OUTSIDE for row in report.modules)


def _module_row(row: ModuleRow, width: int) -> str:
    name = row.module if len(row.module) <= width else f"…{row.module[1 - width :]}"
    plain, saved, recomputed = map(format_bytes, _sizes(row))
    return f"{name:<{width}}{plain:>15}{saved:>12}{recomputed:>12}"


def _sizes(row: ModuleRow) -> tuple[int, int, int]:
    return row.plain_bytes, row.saved_bytes, row.recomputed_bytes


def _bytes_of(row: ModuleRow) -> int:
    return sum(_sizes(row))


def next_steps(report: Report) -> Iterator[str]:
    """Yield advice on what to do next, and on how to show the details."""
    yield ""
    if report.refused:
        yield from wrap_line(f"why: {report.refused.splitlines()[0]}")
    elif report.why is not None:
        yield from wrap_line(f"why: {reason_in(report.why)}")
        large = _large_value(report)
        remedy = remedy_in(report.why) if large is None else _IN_PARTS.format(**large)
        # A message without a remedy consists of the reason only.
        if remedy != reason_in(report.why):
            yield from wrap_line(f"next: {remedy}")
    elif (cheaper := _cheaper(report)) is not None:
        yield from wrap_line(f"next: {cheaper}")
    elif report.is_minimum:
        yield from wrap_line(f"next: {_LEAST if report.is_complete else _LEAST_SO_FAR}")
    elif report.rounds:
        yield "next: a larger budget takes less extra work, a smaller one less memory"
    else:
        yield 'next: budget="min" looks for less memory, budget=0.5 or "8GiB" for the least work that fits'
    if report.variant is Variant.MERGED:
        yield from wrap_line(_MERGED)
    if report.donation is not None:
        yield from wrap_line(_donation_advice(report.donation))
    yield 'more: print(report.details()) for charts and remarks, report.save("step.html") for a page'


def _donation_advice(donation: Donation) -> str:
    return _DONATE.format(option=donation.option, size=format_bytes(donation.bytes), caution=donation.caution)


def _cheaper(report: Report) -> str | None:
    """Return advice on a plan with less work; None if the work is worth the saving.

    With a budget, the advice names a plan that needs hardly more memory but much less work. Without a budget, it names
    options that spend less work on a small saving.
    """
    plain, less, (plain_flops, flops) = report.plain, report.less, report.flops
    if not plain.temporaries or less.temporaries is None or not plain_flops or flops is None:
        return None
    needs, extra = less.temporaries, flops / plain_flops - 1
    runs = next((candidate for candidate in report.rounds if candidate.measured_bytes == needs), None)
    if runs is not None:
        # Candidates of equal size differ only in their work.
        near = [
            candidate
            for candidate in report.rounds
            if candidate.measured_bytes is not None
            and candidate.measured_bytes <= NEARLY * needs
            and candidate.extra_flops <= MUCH_CHEAPER * runs.extra_flops
        ]
        best = min(near, key=lambda candidate: candidate.extra_flops, default=None)
        if best is None or best.measured_bytes is None:
            return None
        return _NEARLY_AS_SMALL.format(
            share=_budget_of(best.measured_bytes, plain.temporaries),
            size=format_bytes(best.measured_bytes),
            least=format_bytes(needs),
            work=f"{best.extra_flops / runs.extra_flops:.0%}".replace("%", " %"),
        )
    saved = 1 - needs / plain.temporaries
    if report.rounds or extra < NOTABLE_WORK or extra < saved:
        return None
    return _LITTLE_SAVED.format(extra=f"{extra:.0%}".replace("%", " %"), saved=f"{saved:.0%}".replace("%", " %"))


def _budget_of(needs: int, plain: int) -> str:
    """Return the smallest budget that allows `needs` bytes, as a share of the plain temporaries in whole percent:
    `0.35`."""
    return f"{-(-100 * needs // plain) / 100:g}"


def _large_value(report: Report) -> dict[str, str] | None:
    """Return the fields of `_IN_PARTS` for a saved value that makes up most of the temporaries; None if there is
    none."""
    value = max(report.kept, key=lambda value: value.bytes, default=None)
    if value is None or value.bytes < MOST_OF * (report.plain.temporaries or 0):
        return None
    return {"operation": value.operation, "position": base_name(value.position), "size": format_bytes(value.bytes)}


def _measured(report: Report) -> Iterator[str]:
    """Yield a line on the temporaries of each variant that was compiled for the choice."""
    for variant, size in report.measured:
        text = _NOT_REPORTED if size is None else format_bytes(size)
        yield f"  {text:>10}  {variant.value}"


def _row(
    quantity: str, before: float | None, after: float | None, spell: Callable[[Any], str]
) -> tuple[str, str, str, str]:
    if before is None or after is None:
        return quantity, "", _NOT_REPORTED, ""
    return quantity, spell(before), spell(after), f"{after / before:.3f}" if before else "-"


def _fits(report: Report, needs: Needs) -> str:
    size = needs.device_bytes
    return "unknown" if size is None or report.budget is None else "yes" if size <= report.budget else "no"


def _recomputed(report: Report) -> str:
    """Return the numbers of recomputed operations as text: `12 operations: layer1 4, layer0 4, layer2 4`."""
    named = [f"{module} {count}" for module, count in report.again[:_MOST]]
    others = [f"and {len(report.again) - _MOST} more"] if len(report.again) > _MOST else []
    in_step = sum(count for _, count in report.again)
    left = f", of which {in_step} are left after simplification"
    total = f"{counted(report.copies, 'operation')}{left if named and in_step != report.copies else ''}"
    return f"{total}{': ' * bool(named)}{', '.join([*named, *others])}"


def _kept(report: Report, most: int, place_of: Callable[[str], str] = str) -> Iterator[str]:
    """Yield lines on the values that are saved for the backward pass. Values with the same operation, position and
    reason
    share a line."""
    if not report.kept:
        return
    compared = ""
    if report.modules:
        stored = format_bytes(sum(row.saved_bytes for row in report.modules))
        compared = f", {stored} after it{', as in the table' if _has_named_modules(report) else ''}"
    yield f"kept for the backward pass: {format_bytes(_bytes(report.kept))} of values before fusion{compared}"
    by_place = dict[tuple[str, str, str | None], list[SavedValue]]()
    for value in report.kept:
        by_place.setdefault((value.operation, value.position, value.reason), []).append(value)
    groups = sorted(by_place.values(), key=_bytes, reverse=True)
    for group in groups[:most]:
        value = group[0]
        position = "" if value.position == UNKNOWN else f", {place_of(value.position)}"
        places = _places_of(group) or (f", {len(group)} values" if len(group) > 1 else "")
        place = f"{value.operation}{places}{position}"
        yield f"  {format_bytes(_bytes(group)):>10}  {place}: {value.reason}"
    if len(groups) > most:
        yield f"  {format_bytes(sum(map(_bytes, groups[most:]))):>10}  in {counted(len(groups) - most, 'more place')}"


def _places_of(group: Sequence[SavedValue]) -> str:
    """Return the modules or named segments of values as ` in LM/Block_0, LM/Block_1 and 2 more`; "" if they have
    none."""
    places = [value.module or value.segment for value in group if value.module or is_scope(value.segment)]
    names = list(dict.fromkeys([without_loop_scopes(place) for place in places]))
    others = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f" in {', '.join(names[:2])}{others}" if names else ""


def _bytes(values: Iterable[SavedValue]) -> int:
    return sum(value.bytes for value in values)


def _charts(report: Report) -> Iterator[str]:
    top = max((timeline.peak_bytes for _, timeline in report.timelines), default=0)
    for name, timeline in _by_module(report):
        if timeline.operations:
            yield f"{name}, temporaries in program order by the model of XLA:CPU"
            yield from chart(timeline, _WIDTH, top)
            yield from alive_at_the_peak(timeline)


def _by_module(report: Report) -> list[tuple[str, Timeline]]:
    """Return the timelines with the modules of the model in place of segments.

    If there are no modules, source lines replace the segments that no scope names.
    """
    return [(name, report.module_names.relabel(timeline)) for name, timeline in report.timelines]


FORMATS: Mapping[str, Callable[[Report], str]] = {
    ".html": to_html,
    ".svg": to_svg,
    ".txt": lambda report: f"{to_details(report)}\n",
    ".json": to_json,
}
"""The functions that write each file format, by suffix."""
