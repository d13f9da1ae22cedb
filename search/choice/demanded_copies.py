"""Remarks on copies that marks or segment budgets demand although the copies raise a peak, or lower no peak.

Such copies are not vetoed (`vetoes.py`). The remarks tell the user that the step needs as much memory as before, or
more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...analysis.forecasts.peaks import Peaks
from ...planning.by_segment.numbered_segments import is_numbered
from ...planning.objective import raises_peak
from ...support.counted import counted
from ...support.interface import interface_wording, option
from ...support.remarks import Remark, RemarkKind, Topic
from ...support.units import readable_bytes


def remarks_on_raised_peaks(
    before: Mapping[str, Peaks], after: Mapping[FuncOp, Peaks], budgeted: Collection[str], keeps_barriers: bool
) -> Iterator[Remark]:
    """Yield a remark on each function whose peak is raised by copies that are not optional. The remark contains the
    peaks and a remedy.

    Args:
        before: The peaks of the original steps in which marks or segment budgets demand copies, by function name.
        after: The peaks of the emitted steps.
        budgeted: The names of the functions with segment budgets.
        keeps_barriers: Whether the target keeps barriers, so that the peak under the XLA:CPU model is also compared.
    """
    for function, peaks in after.items():
        name = function.sym_name.data
        if name not in before or not (raised := _raised_peaks(before[name], peaks, keeps_barriers)):
            continue
        changes = " and ".join(
            f"from {readable_bytes(old)} to {readable_bytes(new)} {model}" for model, old, new in raised
        )
        amounts = [
            amount
            for model, old, new in raised
            for amount in ((f"{_AMOUNTS[model]}_before", old), (f"{_AMOUNTS[model]}_after", new))
        ]
        cause = _cause_and_remedy(name in budgeted)
        reason = f"{cause[0]} raise the peak {changes}: {cause[1]}"
        yield Remark(function, reason, RemarkKind.ANALYSIS, Topic.PEAK_RAISED, amounts=tuple(amounts))


def remarks_on_useless_marks(
    before: Mapping[str, Peaks], after: Mapping[FuncOp, Peaks], extra_flops: Mapping[str, int], keeps_barriers: bool
) -> Iterator[Remark]:
    """Yield a remark on each function in which the copies that marks demand change no peak.

    Args:
        before, after, keeps_barriers: As for `remarks_on_raised_peaks`, for functions without segment budgets.
        extra_flops: The FLOPs of the copies, by function name.
    """
    for function, peaks in after.items():
        name = function.sym_name.data
        if name not in before or before[name].in_order != peaks.in_order:
            continue
        if keeps_barriers and before[name].xla != peaks.xla:
            continue
        reason = (
            f"the marked operations cost {counted(extra_flops[name], 'FLOP')} more and lower no peak: remove the "
            "marks, or also mark the operations whose results are live at the peak (recompute-opt -t memory-timeline)"
        )
        yield Remark(function, reason, topic=Topic.NO_PEAK_LOWERED, amounts=(("flops", extra_flops[name]),))


def without_choices_of_useless_marks(remarks: Iterable[Remark], useless: Iterable[Remark]) -> list[Remark]:
    """Drop remarks on the division into unnamed segments in functions whose marks lower no peak, and return the other
    remarks. In these functions, the search recomputes nothing besides the marked operations, so the division is
    irrelevant to the user.

    `useless`: the remarks of `remarks_on_useless_marks`.
    """
    functions = {remark.operation for remark in useless}
    return [
        remark
        for remark in remarks
        if not (remark.topic is Topic.CHOICE and remark.operation in functions)
        and not (remark.segments and all(map(is_numbered, remark.segments)) and _function_of(remark) in functions)
    ]


def _function_of(remark: Remark) -> Operation | None:
    op: Operation | None = remark.operation
    while op is not None and not isinstance(op, FuncOp):
        op = op.parent_op()
    return op


_IN_ORDER, _UNDER_XLA = "in program order", "under the XLA:CPU model"
_AMOUNTS = {_IN_ORDER: "peak_bytes", _UNDER_XLA: "xla_peak_bytes"}


def _raised_peaks(before: Peaks, after: Peaks, keeps_barriers: bool) -> list[tuple[str, int, int]]:
    """Return the peaks that rise, as tuples of memory model, bytes before and bytes after."""
    peaks = [(_IN_ORDER, before.in_order, after.in_order)]
    if keeps_barriers:
        peaks.append((_UNDER_XLA, before.xla, after.xla))
    return [(model, old, new) for model, old, new in peaks if raises_peak(old, new)]


def _cause_and_remedy(has_segment_budgets: bool) -> tuple[str, str]:
    budget = interface_wording("budget=80%", 'budget="80%"')
    if has_segment_budgets:
        return f"the copies for {option('segment-budgets')}", (
            "the segments save fewer bytes, but recomputing them takes more memory at the peak; raise these budgets, "
            f"or give the step a budget instead, such as {budget}"
        )
    return "the copies that marks demand", f"remove these marks, or give the step a budget instead, such as {budget}"
