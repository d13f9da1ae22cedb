"""Vetoes: the reasons to leave a step unchanged, or its functions inlined, although a choice was made.

A choice is judged three times, each time with better data:

    why_worse                 the forecast peaks of the best attempt, before anything is copied
    why_all_worse             the peaks of the emitted steps: CSE may extend live ranges beyond the plan
    why_calls_stay_inlined    the peaks with restored calls

The first two leave the step unchanged, the third one leaves functions inlined; each reason becomes a remark. Marks of
the user and given plans are not vetoed. Errors are reported elsewhere: plans that do not fit (`transforms/clone.py`),
segments above their budgets (`check_limits` in `transforms/plans/limit_segments.py`), and budgets that no plan meets
(`budget/`).
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.memory.peaks import Peaks
from ..analysis.step.order import functions_of
from ..planning.objective import WORTH_IT, is_worth_it, raises_peak
from ..support.diagnostics import Remark
from ..support.units import readable_bytes
from ..transforms.cse import cse
from ..transforms.preparation.timelines import flat_copy, peaks_in_order
from .unchanged_steps import remark_on_unchanged_step


def why_worse(before: Peaks, after: Peaks, keeps_barriers: bool) -> str | None:
    """Return the reason why the unchanged step is better; None if a peak falls by more than `WORTH_IT` and no peak
    rises by that share.

    `keeps_barriers`: whether the target keeps the barriers that enforce the order of copies, so that eager executors
    count too.
    """
    if (raised := why_peak_rises(before, after, keeps_barriers)) is not None:
        return raised
    if any(is_worth_it(old, new) for _, old, new in _peaks_without_xla(before, after, keeps_barriers)):
        return None
    if keeps_barriers and is_worth_it(before.xla, after.xla):
        return None
    # Without barriers the target is not XLA, and its peaks may no longer be computable after a rewrite.
    xla = (
        f", and from {readable_bytes(before.xla)} to {readable_bytes(after.xla)} under XLA:CPU"
        if keeps_barriers
        else ""
    )
    old, new = readable_bytes(before.in_order), readable_bytes(after.in_order)
    return f"recomputing changes the peak from {old} to {new}{xla}: less than {100 * WORTH_IT:g} % saved"


def why_peak_rises(before: Peaks, after: Peaks, keeps_barriers: bool) -> str | None:
    """Return the reason why the unchanged step is better if a peak rises, without the model of XLA:CPU; else None."""
    for peak_name, old, new in _peaks_without_xla(before, after, keeps_barriers):
        if raises_peak(old, new):
            return f"recomputing raises {peak_name} from {readable_bytes(old)} to {readable_bytes(new)}"
    return None


def _peaks_without_xla(before: Peaks, after: Peaks, keeps_barriers: bool) -> list[tuple[str, int, int]]:
    """Return the peaks that need no model of XLA:CPU: the name, the bytes before, and the bytes after."""
    pairs = [("the peak", before.in_order, after.in_order)]
    if keeps_barriers:
        pairs.append(("the peak of an executor that starts operations as soon as it can", before.eager, after.eager))
    return pairs


def why_all_worse(
    before: Mapping[str, Peaks], emitted: Mapping[FuncOp, Peaks], keeps_barriers: bool
) -> tuple[Remark, ...]:
    """Return a remark for each emitted step, with the reason that it is not an improvement; empty if one of the steps
    is an improvement.

    Args:
        before: The peaks of the unchanged steps by function name, without steps in which a copy is forced: those may
            not be left unchanged.
        emitted: The peaks of the emitted steps.
        keeps_barriers: As for `why_worse`.
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
    """Return whether restored calls may raise a peak, so that the module has to be compared with one without calls.

    A call needs all its operands and results at one time, while its operations could be spread out, and equal
    operations of different calls are not merged. This concerns executors that keep only program order: XLA inlines
    calls, merges equal operations and has an order of its own.

    Args:
        called: The module with restored calls.
        before: The peaks before calls were restored, in bytes by function.
    """
    module = flat_copy(called)
    peaks = peaks_in_order(module)
    cse(module)
    merged = peaks_in_order(module)
    return any(raises_peak(min(before[name], merged[name]), peak) for name, peak in peaks.items())


def why_calls_stay_inlined(called: ModuleOp, inlined: ModuleOp) -> Remark | None:
    """Return a remark on the first function with a lower peak if all calls are inlined; None if there is no such
    function, so that calls are restored."""
    least = peaks_in_order(flat_copy(inlined))
    for function in functions_of(module := flat_copy(called)):
        name = function.sym_name.data
        if raises_peak(least[name], peak := peaks_in_order(module)[name]):
            return Remark(
                function,
                "functions stay inlined: calling them again would raise the peak in program order from "
                f"{readable_bytes(least[name])} to {readable_bytes(peak)}",
            )
    return None
