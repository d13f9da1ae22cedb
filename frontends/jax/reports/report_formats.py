"""Convert a report to a text summary, the full text, HTML, SVG or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from html import escape

from ....analysis.memory.timeline import Timeline
from ....reports import memory_chart, memory_html
from ....reports.memory_html import PageFacts
from ....reports.memory_timeline import alive_at_the_peak, chart
from ....reports.wrapping import wrap_line
from ....support.locations import base_name
from .module_table import COLUMNS, has_named_modules, module_table, sizes, sum_of_rows
from .report_advice import next_steps
from .report_numbers import columns, headline, needs, rows_of_numbers, table, verdicts
from .report_records import ReportData
from .report_remarks import remark_lines
from .saved_value_lines import saved_value_lines

SVG = ".svg"
"""The suffix of the format that needs matplotlib."""
_MAX_VALUES = 8
"""The maximum number of saved values in the full text. Of further values, only the total is given."""
_MODULES, _PLACES = 5, 3
"""The maximum number of modules, and of saved values, in the short text."""
_INDENT = 14
"""The indentation of continuation lines of an entry that begins with a byte count."""
_WIDTH = 72


def to_text(report: ReportData) -> str:
    """Return the report in about 25 lines of 100 columns: verdict, memory and work, modules and saved values."""
    kept = [part for line in saved_value_lines(report, _PLACES, base_name) for part in wrap_line(line, _INDENT)]
    parts = [verdicts(report), list(needs(report)), list(module_table(report, _MODULES)), kept]
    return "\n".join(["\n\n".join("\n".join(lines) for lines in parts if lines), *next_steps(report)])


def to_details(report: ReportData) -> str:
    """Return the report in full, with the candidates, the copies by segment, memory over time, and the remarks."""
    remarks = [f"  {line}" for line in remark_lines(report)]
    modules = list(module_table(report, len(report.modules)))
    if has_named_modules(report):
        modules.append(COLUMNS)
    parts = [
        verdicts(report),
        list(table(report)),
        modules,
        list(saved_value_lines(report, _MAX_VALUES)),
        list(_charts(report)),
        remarks,
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def to_html(report: ReportData) -> str:
    """Return the report as an HTML page that contains its data and its script."""
    rows = (*report.modules, sum_of_rows("total", report.modules)) if has_named_modules(report) else ()
    modules = tuple((row.module, *sizes(row)) for row in rows)
    numbers = (("", *columns(report)), *rows_of_numbers(report))
    facts = PageFacts("\n".join(verdicts(report)), numbers, modules, tuple(remark_lines(report)))
    return memory_html.to_html(report.timelines, report.name, facts)


def to_svg(report: ReportData) -> str:
    """Return a chart of the memory over time as SVG.

    Raises `ValueError` if the report has no timelines, and `ImportError` if matplotlib is missing.
    """
    if not report.timelines:
        raise ValueError(f"{report.name}: the report has no chart, since nothing is recomputed")
    memory_chart.demand_matplotlib(f"{SVG} needs", f"the formats {', '.join(name for name in FORMATS if name != SVG)}")
    return memory_chart.to_svg(_by_module(report), report.name)


def to_json(report: ReportData) -> str:
    """Return the numbers of the report as JSON, with sizes in bytes and without the timelines."""
    facts = {
        "verdict": headline(report),
        "variant": report.variant.value,
        "measured": {variant.value: size for variant, size in report.measured},
        "remarks": list(map(str, report.remarks)),
        "copies_by_module": dict(report.copies_by_module),
        "name": report.name,
        "fit": report.fit,
        "plain": report.plain,
        "chosen": report.chosen,
        "why": report.why,
        "copies": report.copies,
        "proved": report.proved,
        "kept": report.kept,
        "modules": report.modules,
        "budget": report.search.limit_bytes,
        "budget_text": report.search.text,
        "refused": report.search.refused,
        "rounds": report.search.candidates,
        "devices": report.devices,
        "values_per_device": report.stored.is_per_device,
        "segments": report.model.segments,
        "places": report.loops.positions,
        "has_loops": report.loops.has_loops,
        "donation": report.donation,
    }
    return json.dumps(facts, default=asdict, indent=1) + "\n"


def to_notebook(report: ReportData) -> str:
    """Return the HTML page in an iframe. The iframe separates the page's styles and script from the notebook."""
    return f'<iframe srcdoc="{escape(to_html(report))}" style="width: 100%; height: 900px; border: 0"></iframe>'


def _charts(report: ReportData) -> Iterator[str]:
    top = max((timeline.peak_bytes for _, timeline in report.timelines), default=0)
    for name, timeline in _by_module(report):
        if timeline.operations:
            yield f"{name}, temporaries in program order by the XLA:CPU model"
            yield from chart(timeline, _WIDTH, top)
            yield from alive_at_the_peak(timeline)


def _by_module(report: ReportData) -> list[tuple[str, Timeline]]:
    """Return the timelines with the modules of the model in place of segments.

    If there are no modules, source lines replace the segments that no scope names.
    """
    return [(name, report.model.names.relabel(timeline)) for name, timeline in report.timelines]


FORMATS: Mapping[str, Callable[[ReportData], str]] = {
    ".html": to_html,
    SVG: to_svg,
    ".txt": lambda report: f"{to_details(report)}\n",
    ".json": to_json,
}
"""The functions that write each file format, by suffix."""
