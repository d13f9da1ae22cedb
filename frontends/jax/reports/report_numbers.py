"""Print the memory and the FLOPs of a report: the verdict in one line, and a table of the plain and the rewritten
step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ....reports.wrapping import wrap_line
from ....support.counted import counted
from ....support.units import format_bytes
from ..compilation.variants import Variant
from ..messages.no_effect import no_effect_lines
from .device_part import bytes_per_device, whole_bytes
from .report_records import Needs, ReportData

_MAX_MODULES = 8
"""The maximum number of modules to list with their recomputed operations. Further modules are only counted."""
_LITTLE_LESS = 0.95
"""If the rewritten step needs more than this share of the plain step's bytes on the device, the first line of the
report mentions it, because most of these bytes are arguments and results."""
_NOT_REPORTED = "not reported by the compiler"


def headline(report: ReportData) -> str:
    """Return the first line of the report: for `recompute.jax.explain`, whether the step fits, otherwise the memory
    reduction.
    """
    return verdict(report) if report.fit is None else report.fit.text


def verdicts(report: ReportData) -> list[str]:
    """Return the line that gives the memory reduction, followed by lines on marks without effect.

    For `recompute.jax.explain`, a line that says whether the step fits comes first.
    """
    lines = [verdict(report)] if report.fit is None else [report.fit.text, verdict(report)]
    lines.extend(f"warning: {line}" for line in no_effect_lines(report.remarks))
    return [part for line in lines for part in wrap_line(line)]


def verdict(report: ReportData) -> str:
    """Return the memory reduction in one line: `step: 140.9 MiB -> 19.5 MiB of temporaries (-86 %), +21 % FLOPs, proved
    equal`.
    """
    plain, less = report.plain, report.chosen
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
        parts.append(f"{_percent(plain_flops, flops)} FLOPs")
    if report.variant is Variant.KEEPING:
        parts.append("by its own jax.checkpoint")
    else:
        parts.append("proved equal" if report.proved else "not proved")
    return f"{report.name}: {', '.join(parts)}"


def _change(before: int, after: int) -> str:
    return f" ({_percent(before, after)})" if before else ""


def _percent(before: float, after: float) -> str:
    """Return the change as text: `+21 %`. A change that rounds to 0 is `+0 %`, never `-0 %`."""
    return f"{round(100 * (after / before - 1)):+d} %"


def needs(report: ReportData) -> Iterator[str]:
    """Yield a table with the memory and the FLOPs of the plain and the rewritten step, and whether the steps fit. Lines
    on the variant that runs and on the counts follow."""
    for quantity, plain, less, ratio in ((report.name, *columns(report)), *rows_of_numbers(report)):
        yield f"{quantity:<16}{plain:>14}{less:>14}{ratio:>8}".rstrip()
    if report.search.refused:
        yield f"without the budget, a call runs: {report.variant.value}; with the budget, a call raises an error"
    else:
        yield f"{'runs' if report.fit is None else 'a call runs'}: {report.variant.value}"
    if report.fit is not None:
        yield "sizes: as the compiler reports them; on the device: temporaries, arguments and results"
    if report.loops.executed_flops is not None:
        yield "FLOPs: counted in the program, all iterations of loops included"
    elif report.loops.has_loops:
        yield "FLOPs: as the compiler counts them, the body of each loop once"
    elif report.fit is not None:
        yield "FLOPs: as the compiler counts them"
    if report.devices > 1:
        yield bytes_per_device(report.devices)
    if not report.stored.is_per_device:
        yield from wrap_line(whole_bytes(report.devices))


def columns(report: ReportData) -> tuple[str, str, str]:
    """Return the titles of the columns of `rows_of_numbers`."""
    is_rewritten = report.variant in (Variant.RECOMPUTED, Variant.MERGED)
    return "plain", "recomputed" if is_rewritten else "as it runs", "ratio"


def rows_of_numbers(report: ReportData) -> Iterator[tuple[str, str, str, str]]:
    """Yield rows of four cells: a quantity, its value for the plain step, its value for the step that runs, and the
    ratio of the two values."""
    plain, less = report.plain, report.chosen
    yield _row("temporaries", plain.temporaries, less.temporaries, format_bytes)
    yield _row("on the device", plain.device_bytes, less.device_bytes, format_bytes)
    yield _row("FLOPs", *report.flops, "{:.3g}".format)
    if report.search.limit_bytes is not None:
        text = "" if report.search.is_minimum else report.search.text
        label = f"fits in {text or format_bytes(report.search.limit_bytes)}"
        yield label, _fits(report, plain), _fits(report, less), ""


def table(report: ReportData) -> Iterator[str]:
    """Yield the lines of `needs`, then lines on all compiled variants and candidates, then a line on the recomputed
    operations."""
    yield from needs(report)
    yield from _measured(report)
    yield from (f"  compiled: {candidate}" for candidate in report.search.candidates)
    if report.search.candidates and report.loops.executed_flops is None:
        yield "  FLOPs of these candidates: counted in the program, before the compiler simplifies it"
    yield report.why or f"recomputed: {_recomputed(report)}"


def _measured(report: ReportData) -> Iterator[str]:
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


def _fits(report: ReportData, needs: Needs) -> str:
    size, limit = needs.device_bytes, report.search.limit_bytes
    if size is None or limit is None:
        return "unknown"
    return "yes" if size <= limit else "no"


def _recomputed(report: ReportData) -> str:
    """Return the numbers of recomputed operations as text: `12 operations: layer1 4, layer0 4, layer2 4`."""
    named = [f"{module} {count}" for module, count in report.copies_by_module[:_MAX_MODULES]]
    others = (
        [f"and {len(report.copies_by_module) - _MAX_MODULES} more"]
        if len(report.copies_by_module) > _MAX_MODULES
        else []
    )
    in_step = sum(count for _, count in report.copies_by_module)
    left = f", of which {in_step} are left after simplification"
    total = f"{counted(report.copies, 'operation')}{left if named and in_step != report.copies else ''}"
    return f"{total}{': ' * bool(named)}{', '.join([*named, *others])}"
