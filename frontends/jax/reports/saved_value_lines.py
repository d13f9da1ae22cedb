"""The lines of a report on the values that are saved for the backward pass, with the reason for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ....analysis.explain.saved_values import SavedValue
from ....analysis.step.descriptions import is_scope, without_loop_scopes
from ....support.counted import counted
from ....support.diagnostics import UNKNOWN
from ....support.units import format_bytes
from .module_table import has_named_modules
from .report_records import ReportData


def saved_value_lines(report: ReportData, most: int, place_of: Callable[[str], str] = str) -> Iterator[str]:
    """Yield lines on the values that are saved for the backward pass. Values with the same operation, position and
    reason share a line."""
    if not report.kept:
        return
    compared = ""
    if report.modules:
        stored = format_bytes(sum(row.saved_bytes for row in report.modules))
        compared = f", {stored} after it{', as in the table' if has_named_modules(report) else ''}"
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
    """Return a phrase that lists the modules or named segments of values, such as ` in LM/Block_0, LM/Block_1 and 2
    more`; "" if they have none."""
    places = [value.module or value.segment for value in group if value.module or is_scope(value.segment)]
    names = list(dict.fromkeys([without_loop_scopes(place) for place in places]))
    others = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f" in {', '.join(names[:2])}{others}" if names else ""


def _bytes(values: Iterable[SavedValue]) -> int:
    return sum(value.bytes for value in values)
