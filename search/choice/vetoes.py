"""Vetoes against a choice: reasons to leave a step unchanged, or to leave its functions inlined.

A choice is checked three times, each time with better data. The first check also considers the work of the choice:

    why_worse                 the forecast peaks of the best attempt, before anything is copied
    why_too_much_work         its work, at the same time
    why_all_worse             the peaks of the emitted steps: CSE may extend live ranges beyond the plan
    why_calls_stay_inlined    the peaks with restored calls

The vetoes of the first two checks leave the step unchanged; the veto of the third check leaves functions inlined. Each
reason becomes a remark. User marks and user-given plans are not vetoed. Errors are reported elsewhere: plans that do
not match the step (`transforms/plans/given_plans.py`), segments above their budgets (`check_limits` in
`local_choices/limit_segments.py`), and budgets that no plan meets (`budget/`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ...analysis.forecasts.peaks import Peaks
from ...analysis.step.order import functions_of
from ...planning.objective import MIN_SAVED_SHARE, is_too_much_work, is_worth_it, raises_peak
from ...support.remarks import Remark
from ...support.units import readable_bytes
from ...transforms.cse import cse
from ...transforms.preparation.timelines import flat_copy, peaks_in_order
from .unchanged_steps import remark_on_unchanged_step


def why_worse(before: Peaks, after: Peaks, keeps_barriers: bool) -> str | None:
    """Return the reason that the unchanged step is better; None if a peak falls by more than the share
    `MIN_SAVED_SHARE`, and no peak rises by more than this share.

    `keeps_barriers`: whether the target keeps the barriers that enforce the order of copies, so that the peaks under an
    eager executor and under XLA:CPU are also compared.
    """
    if (raised := why_peak_rises(before, after, keeps_barriers)) is not None:
        return raised
    if any(is_worth_it(old, new) for _, old, new in _peaks_without_xla(before, after, keeps_barriers)):
        return None
    if keeps_barriers and is_worth_it(before.xla, after.xla):
        return None
    # Without barriers, the target is not XLA, and the peaks under XLA:CPU may not be computable after a rewrite.
    xla = (
        f", and from {readable_bytes(before.xla)} to {readable_bytes(after.xla)} under XLA:CPU"
        if keeps_barriers
        else ""
    )
    old, new = readable_bytes(before.in_order), readable_bytes(after.in_order)
    return (
        f"recomputing changes the peak from {old} to {new}{xla}: a reduction of less than {100 * MIN_SAVED_SHARE:g} %"
    )


def why_too_much_work(work: int, extra_work: int, before: Sequence[int], after: Sequence[int]) -> str | None:
    """Return the reason that the unchanged step is better if the copies take too much work for their reduction of
    memory; otherwise None.

    Args:
        work: The cost of the unchanged step, such as its FLOPs.
        extra_work: The cost of the copies, in the same unit.
        before: The peaks of the unchanged step in bytes, beginning with the peak that matters for the target.
        after: The peaks of the best attempt in bytes, in the same order.
    """
    total = work + extra_work
    if not is_too_much_work(total, after, work, before):
        return None
    return (
        f"the best of the tried divisions into segments would take {total / work:.1f} times the work of the step, and "
        f"lower its peak only from {readable_bytes(before[0])} to {readable_bytes(after[0])}; with a memory budget, "
        "such as 80 %, the search also tries smaller sets of copies"
    )


def why_peak_rises(before: Peaks, after: Peaks, keeps_barriers: bool) -> str | None:
    """Return the reason that the unchanged step is better if a peak rises; otherwise None. The peak under the XLA:CPU
    model is not considered."""
    for peak_name, old, new in _peaks_without_xla(before, after, keeps_barriers):
        if raises_peak(old, new):
            return f"recomputing raises {peak_name} from {readable_bytes(old)} to {readable_bytes(new)}"
    return None


def _peaks_without_xla(before: Peaks, after: Peaks, keeps_barriers: bool) -> list[tuple[str, int, int]]:
    """Return the peaks that do not require the XLA:CPU model, as tuples of name, bytes before and bytes after the
    choice."""
    pairs = [("the peak", before.in_order, after.in_order)]
    if keeps_barriers:
        pairs.append(("the peak of an executor that starts operations as soon as it can", before.eager, after.eager))
    return pairs


def why_all_worse(
    before: Mapping[str, Peaks], emitted: Mapping[FuncOp, Peaks], keeps_barriers: bool
) -> tuple[Remark, ...]:
    """Return a remark on each emitted step, with the reason that it is not an improvement. Return no remarks if at
    least one step is an improvement.

    Args:
        before: The peaks of the unchanged steps, by function name. Steps in which a mark forces a copy are not
            included, because they must not be left unchanged.
        emitted: The peaks of the emitted steps.
        keeps_barriers: As in `why_worse`.
    """
    remarks = list[Remark]()
    for function, after in emitted.items():
        peaks = before.get(function.sym_name.data)
        reason = None if peaks is None else why_worse(peaks, after, keeps_barriers)
        if reason is None:
            return ()
        remarks.append(remark_on_unchanged_step(function, reason))
    return tuple(remarks)


def calls_may_raise_peak(called: ModuleOp, before: Mapping[str, int]) -> bool:
    """Return whether restored calls may raise a peak, so that the module must be compared with a module without calls.

    During a call, all its operands and results are live at the same time, while inlined operations could be spread out.
    Also, equal operations of different calls are not merged. This affects only executors in program order: XLA inlines
    calls, merges equal operations and chooses its own order.

    Args:
        called: The module with restored calls.
        before: The peak of each function before calls were restored, in bytes.
    """
    module = flat_copy(called)
    peaks = peaks_in_order(module)
    cse(module)
    merged = peaks_in_order(module)
    return any(raises_peak(min(before[name], merged[name]), peak) for name, peak in peaks.items())


def why_calls_stay_inlined(called: ModuleOp, inlined: ModuleOp) -> Remark | None:
    """Return a remark on the first function whose peak is lower if all calls are inlined; None if there is no such
    function, so that calls are restored."""
    least = peaks_in_order(flat_copy(inlined))
    for function in functions_of(module := flat_copy(called)):
        name = function.sym_name.data
        if raises_peak(least[name], peak := peaks_in_order(module)[name]):
            return Remark(
                function,
                "functions stay inlined: restoring their calls would raise the peak in program order from "
                f"{readable_bytes(least[name])} to {readable_bytes(peak)}",
            )
    return None
