"""Print the explanation of a step as text, as a summary or as JSON: its memory, saved values, loops and segments."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict

from ..analysis.explain.explanation import Explanation, SegmentRow
from ..analysis.explain.loop_rows import LoopRow
from ..planning.by_segment.numbered_segments import is_numbered
from ..rules.costs.cost import FLOPS
from ..support.counted import counted
from ..support.locations import base_name
from ..support.units import format_bytes
from .wrapping import SUMMARY_COLUMNS, wrap_line

LOOPS, SEGMENTS = 4, 8
"""The maximum numbers of loops and of segments in a summary."""
_COLUMNS = ("segment", "saved", "freed", "kept instead", "extra {unit}", "copies", "decision")

ROWS_ALONE = (
    "Each row gives the effect of recomputing only that segment. Bytes and FLOPs are counted in the program, before "
    "fusion. The rewrite may divide the step into other segments. A call runs the plain step if the rewritten one, as "
    "compiled, needs no less memory; a report shows the plan that runs."
)

_RECOMPUTE = "recompute"
"""The decision that is shown for a recomputed loop or segment."""
_MIN_NAME_WIDTH = 16
"""The number of characters to which a table may shorten the name of a loop or a segment."""
_POSITION = re.compile(r"[^\s:]+:\d+:\d+")
_LOOP_COLUMNS = ("loop", "iterations", "stacks", "handed on", "kept instead", "extra FLOPs", "repeated", "decision")
_SUMMARY_LOOP_COLUMNS = tuple(column for column in _LOOP_COLUMNS if column != "repeated")


def to_text(explanation: Explanation) -> str:
    """Return the memory of the step and the size of its saved values, followed by a row for each loop and each
    segment."""
    timeline = explanation.timeline
    is_named = not explanation.place or explanation.function.endswith(explanation.place)
    place = "" if is_named else f", {explanation.place}"
    lines = [
        f"function @{explanation.function}{place}",
        f"  temporaries  {format_bytes(timeline.peak_bytes)} at their peak in program order, "
        f"{format_bytes(explanation.eager_peak_bytes)} if operations start as soon as they can",
        f"  device       {format_bytes(timeline.device_bytes)} = arguments {format_bytes(timeline.argument_bytes)} "
        f"+ results {format_bytes(timeline.result_bytes)} + temporaries "
        f"- aliased {format_bytes(timeline.aliased_bytes)}",
        f"  saved        {format_bytes(explanation.saved_bytes)} in {counted(explanation.residuals, 'forward value')} "
        f"that the backward pass reads, {format_bytes(explanation.saved_outside_bytes)} of it outside every segment",
        f"  XLA:CPU      {format_bytes(explanation.xla_peak_bytes)} of temporaries, by a model of its fusion and its "
        "order (-t memory-timeline{model=xla})",
        f"  operations   {_operation_counts(explanation)}",
        *([] if explanation.cost == FLOPS else [_costs(explanation)]),
        "",
    ]
    if explanation.loops:
        lines += [*_table([_LOOP_COLUMNS, *(_loop_cells(row, explanation) for row in explanation.loops)]), ""]
    if not explanation.segments:
        return "\n".join([*lines, "  no segments: the locations name no scope (see jax.named_scope)", ""])
    return "\n".join(
        [*lines, *_table([_columns(explanation), *(_cells(row, explanation) for row in explanation.segments)]), ""]
    )


def to_summary(explanation: Explanation) -> str:
    """Return a summary in about 25 lines of at most 100 columns: the verdict, the saved bytes, and the largest loops
    and segments."""
    lines = [*wrap_line(_verdict(explanation)), ""]
    lines += wrap_line(
        f"  the plain step saves {format_bytes(explanation.saved_bytes)} for the backward pass, in "
        f"{counted(explanation.residuals, 'value')}, "
        f"{format_bytes(explanation.saved_outside_bytes)} of it outside every segment",
        4,
    )
    lines += [*wrap_line(f"  its peak of temporaries: {_peaks(explanation)}", 4), ""]
    loops = explanation.loops[:LOOPS]
    segments = _largest(explanation.segments)
    if loops:
        rows = [_SUMMARY_LOOP_COLUMNS, *(_loop_cells(row, explanation, is_summary=True) for row in loops)]
        lines += [*_wrap_table(rows), *_omission_note("loop", explanation.loops, loops), ""]
    if segments:
        rows = [_columns(explanation), *(_cells(row, explanation, is_summary=True) for row in segments)]
        lines += [*_wrap_table(rows), *_omission_note("segment", explanation.segments, segments)]
        lines += [*wrap_line(f"  {ROWS_ALONE}", 4), ""]
    elif explanation.segments:
        lines += ["  no segment saves a value for the backward pass", ""]
    elif not loops:
        lines += ["  no segments: name blocks with jax.named_scope or recompute.jax.block", ""]
    return "\n".join(lines)


def _verdict(explanation: Explanation) -> str:
    """Return the verdict, as one line such as:

    train: 31.0 MiB of temporaries; 4 of 6 segments are worth recomputing: they free 22.1 MiB of the 23.1 MiB that are
    saved, at 18.2 % more FLOPs
    """
    recomputed = [row for row in explanation.segments if row.reason is None]
    loops = [row for row in explanation.loops if row.reason is None]
    measured = explanation.measured_bytes
    size = format_bytes(explanation.xla_peak_bytes if measured is None else measured)
    function = _POSITION.sub(lambda position: base_name(position[0]), explanation.function)
    plain = f"{function}: {size} of temporaries{' predicted' * (measured is None)}"
    if not recomputed and not loops:
        return f"{plain}; no segment is worth recomputing"
    freed = sum(row.freed_bytes - row.pinned_bytes for row in recomputed)
    freed += sum(row.stack_bytes - row.kept_bytes for row in loops)
    # Only FLOPs are counted over all iterations of loops.
    repeated = sum(row.extra_flops for row in loops) if explanation.cost == FLOPS else 0
    cost = (sum(row.extra_cost for row in recomputed) + repeated) / max(explanation.step_cost, 1)
    counts = [f"{len(loops)} of {counted(len(explanation.loops), 'loop')}"] if loops else []
    counts += [f"{len(recomputed)} of {counted(len(explanation.segments), 'segment')}"] if recomputed else []
    is_single = len(recomputed) + len(loops) == 1
    return (
        f"{plain}; {' and '.join(counts)} {'is' if is_single else 'are'} worth recomputing: "
        f"{'it frees' if is_single else 'they free'} "
        f"{format_bytes(freed)} of the {format_bytes(explanation.saved_bytes)} that are saved, at {100 * cost:.1f} % "
        f"more {explanation.cost_unit}{', over all iterations' if loops else ''}"
    )


def _peaks(explanation: Explanation) -> str:
    """Return a phrase with the measured and the predicted peak of the plain step.

    Without a measurement, the phrase gives the prediction and the peak of an executor that fuses no operations.
    """
    measured = explanation.measured_bytes
    predicted = format_bytes(explanation.xla_peak_bytes)
    if measured is not None:
        return f"{format_bytes(measured)} as compiled, as in reports; {predicted} predicted by the XLA:CPU model"
    in_order = f"{format_bytes(explanation.timeline.peak_bytes)} if no operations are fused"
    return f"{predicted} predicted by the XLA:CPU model, {in_order}"


def _largest(rows: Sequence[SegmentRow]) -> list[SegmentRow]:
    """Return the segments that save the most bytes for the backward pass, at most `SEGMENTS`, in program order."""
    largest = sorted((row for row in rows if row.saved_bytes), key=lambda row: -row.saved_bytes)[:SEGMENTS]
    return [row for row in rows if row in largest]


def _omission_note(kind: str, rows: Sequence[LoopRow | SegmentRow], shown: Sequence[object]) -> list[str]:
    """Return a line with the number of omitted rows, which also tells whether these rows save nothing. Return no line
    if no row is omitted.
    """
    if len(rows) == len(shown):
        return []
    others = [row for row in rows if row not in shown]
    saves = any(not isinstance(row, SegmentRow) or row.saved_bytes for row in others)
    nothing = "" if saves else ", which saves nothing" if len(others) == 1 else ", which save nothing"
    return [f"  and {counted(len(others), f'more {kind}')}{nothing}"]


def _columns(explanation: Explanation) -> tuple[str, ...]:
    return tuple(column.format(unit=explanation.cost_unit) for column in _COLUMNS)


def _costs(explanation: Explanation) -> str:
    return f"  cost         by {explanation.cost}: the step takes {explanation.step_cost:.4g} {explanation.cost_unit}"


def _loop_cells(row: LoopRow, explanation: Explanation, is_summary: bool = False) -> tuple[str, ...]:
    """Return the cells of a loop's row, with its extra FLOPs over all iterations.

    In a summary, the row gives the extra FLOPs only as a share, names files without their directories, and omits the
    number of repeated operations.
    """
    share = row.extra_flops / max(explanation.step_flops, 1)
    extra = f"{100 * share:.1f} %" if is_summary else f"{row.extra_flops:.3g} ({share:.1%})"
    repeated = () if is_summary else (str(row.again),)
    per_loop = format_bytes(row.stack_bytes), format_bytes(row.kept_bytes), extra, *repeated
    position = base_name(row.position) if is_summary else row.position
    return position, str(row.trips or ""), str(row.stacks), *per_loop, _decision(row, is_summary)


def _decision(row: LoopRow | SegmentRow, is_summary: bool) -> str:
    if row.reason is None:
        return _RECOMPUTE
    return f"keep: {_POSITION.sub(lambda position: base_name(position[0]), row.reason) if is_summary else row.reason}"


def _operation_counts(explanation: Explanation) -> str:
    """Return the number of operations of each kind, as one line such as:

    12 forward, 9 gradient, 3 copies, 1 tokens, 0 update; 2 saved values cross segments
    """
    crossing = sum(bool(value.crosses) for value in explanation.values)
    kinds = ", ".join(f"{number} {kind}" for kind, number in asdict(explanation.operations).items())
    return f"{kinds}; {counted(crossing, 'saved value')} {'crosses' if crossing == 1 else 'cross'} segments"


def _cells(row: SegmentRow, explanation: Explanation, is_summary: bool = False) -> tuple[str, ...]:
    """Return the cells of a segment's row. In a summary, the row gives the extra cost only as a share, and names files
    without their directories."""
    share = row.extra_cost / explanation.step_cost if explanation.step_cost else 0.0
    return (
        row.name if is_summary or not is_numbered(row.segment) else row.segment,
        format_bytes(row.saved_bytes),
        format_bytes(row.freed_bytes),
        format_bytes(row.pinned_bytes),
        f"{100 * share:.1f} %" if is_summary else f"{row.extra_cost:.3g} ({share:.1%})",
        str(row.copies),
        _decision(row, is_summary),
    )


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the columns of a table: the first and the last column to the left, all columns in between to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    last = len(widths) - 1

    def cell(column: int, text: str) -> str:
        return text.ljust(widths[column]) if column in (0, last) else text.rjust(widths[column])

    return ["  " + "  ".join(cell(column, text) for column, text in enumerate(row)).rstrip() for row in rows]


def _wrap_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the cells of a table within `SUMMARY_COLUMNS` characters.

    Long names are shortened at the beginning. The reason that a loop or segment is kept is printed below its row.
    """
    without_names = len(_table([("", *row[1:-1], _RECOMPUTE) for row in rows])[0]) if rows else 0
    most = max(_MIN_NAME_WIDTH, SUMMARY_COLUMNS - without_names)
    rows = [(_end_of(row[0], most), *row[1:]) for row in rows]
    aligned = _table([(*row[:-1], row[-1] if len(row[-1]) <= len(_RECOMPUTE) else "") for row in rows])
    below = [[] if len(row[-1]) <= len(_RECOMPUTE) else wrap_line(f"    {row[-1]}", 6) for row in rows]
    return [line for row, others in zip(aligned, below, strict=True) for line in (row, *others)]


def _end_of(name: str, most: int) -> str:
    """Return the name, shortened at its beginning to at most `most` characters."""
    return name if len(name) <= most else f"…{name[1 - most :]}"


def to_json(explanations: Sequence[Explanation]) -> str:
    """Return the explanations as JSON.

    Timelines are reduced to their totals; `-t memory-timeline{format=json}` prints them in full.
    """
    return json.dumps([_as_dict(explanation) for explanation in explanations], indent=2) + "\n"


def _as_dict(explanation: Explanation) -> dict[str, object]:
    timeline = explanation.timeline
    return {
        "function": explanation.function,
        "peak_bytes": timeline.peak_bytes,
        "eager_peak_bytes": explanation.eager_peak_bytes,
        "xla_peak_bytes": explanation.xla_peak_bytes,
        "device_bytes": timeline.device_bytes,
        "argument_bytes": timeline.argument_bytes,
        "result_bytes": timeline.result_bytes,
        "aliased_bytes": timeline.aliased_bytes,
        "residuals": explanation.residuals,
        "saved_bytes": explanation.saved_bytes,
        "saved_outside_bytes": explanation.saved_outside_bytes,
        "step_flops": explanation.step_flops,
        "cost": explanation.cost,
        "cost_unit": explanation.cost_unit,
        "step_cost": explanation.step_cost,
        "operations": asdict(explanation.operations),
        "crossing": [value.value for value in explanation.values if value.crosses],
        "segments": [asdict(row) for row in explanation.segments],
        "values": [asdict(value) for value in explanation.values],
        "loops": [asdict(row) for row in explanation.loops],
    }
