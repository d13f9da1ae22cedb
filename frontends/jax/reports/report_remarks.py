"""Print the remarks of a report, and give the place in the model of each segment that they name.

The rewrite numbers the segments that it derives from the structure of the step, such as `segment3`. A module, a source
line, or a phrase such as `between LM/Block_0 and LM/Block_1` gives the place of such a segment in the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....analysis.step.descriptions import without_loop_scopes
from ....planning.by_segment.numbered_segments import is_numbered, number_of_segment, numbered_segment
from ....support.remarks import Remark, lines_of
from ..messages.why_plain import reason_in_model
from .report_records import ReportData

_QUOTED = re.compile(r"'([^']+)'")


def remark_lines(report: ReportData) -> list[str]:
    """Return the remarks as lines, followed by a line on the place of each numbered segment that they name."""
    remarks = [remark if isinstance(remark, str) else _without_loop_names(remark) for remark in report.remarks]
    lines = [_QUOTED.sub(lambda name: f"'{without_loop_scopes(name[1])}'", line) for line in lines_of(remarks)]
    segments = [name for remark in report.remarks if isinstance(remark, Remark) for name in remark.segments]
    named = sorted({number for name in segments if (number := number_of_segment(name)) is not None})
    modules = {
        number: modules for name, modules in report.model.segments if (number := number_of_segment(name)) is not None
    }
    by_place = dict[str, list[str]]()
    for number in named if modules else ():
        by_place.setdefault(place_of_segment(number, modules), []).append(f"'{numbered_segment(number)}'")
    return [*lines, *(f"{', '.join(segments)}: {place}" for place, segments in by_place.items())]


def _without_loop_names(remark: Remark) -> Remark:
    """Return the remark with the name of its segment replaced by the segment's place in the model. A numbered segment
    keeps its name."""
    return remark if any(map(is_numbered, remark.segments)) else replace(remark, reason=reason_in_model(remark))


def place_of_segment(number: int, modules: Mapping[int, Sequence[str]]) -> str:
    """Return the place of a numbered segment in the model. Segments are numbered in program order.

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
