"""The remark that sums up a rewrite without a budget: the peaks before and after, and the copies.

    step.mlir:16:3: remark: @main: peak 68.1 KiB -> 38.1 KiB in program order, 61.0 KiB -> 33.0 KiB by the
    XLA:CPU model; 273 operations are recomputed, 61493 FLOPs more

The search has usually computed the peaks, so making the remark takes no time. If the peak does not fall under the
XLA:CPU model, the remark says so: `recompute` rewrites a step if any of its peaks falls, because the module may also
run in program order.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp

from ..analysis.forecasts.peaks import PeakChange
from ..analysis.step.order import functions_of
from ..planning.objective import is_worth_it
from ..search.outcome import Recomputation
from ..support.counted import counted_are
from ..support.remarks import Remark, RemarkKind, Topic
from ..support.units import format_bytes


def summary_of(module: ModuleOp, outcome: Recomputation) -> Iterator[Remark]:
    """Yield a remark with the effect of a rewrite, located at the first function whose peak is known. Yield nothing if
    no function has copies, or if no peak is known.

    Args:
        module: The rewritten module.
        outcome: The recomputation in it.
    """
    functions = [function for function in functions_of(module) if function.sym_name.data in outcome.peak_changes]
    if not functions or not outcome.copies or _is_told(outcome):
        return
    peaks = [
        f"@{function.sym_name.data}: {_peak_text(outcome.peak_changes[function.sym_name.data])}"
        for function in functions
    ]
    copied = f"{counted_are(outcome.copies, 'operation')} recomputed, {outcome.extra_flops} FLOPs more"
    amounts = [("operations", outcome.copies), ("flops", outcome.extra_flops)]
    if len(functions) == 1:
        amounts = [*_amounts(outcome.peak_changes[functions[0].sym_name.data]), *amounts]
    yield Remark(functions[0], "; ".join([*peaks, copied]), RemarkKind.PASSED, amounts=tuple(amounts))


def _is_told(outcome: Recomputation) -> bool:
    """Return whether no peak changes and an earlier remark already reports this."""
    arrows = [arrow for change in outcome.peak_changes.values() for arrow in (change.in_order, change.xla) if arrow]
    told = any(remark.topic is Topic.NO_PEAK_LOWERED for remark in outcome.remarks)
    return told and all(before == after for before, after in arrows)


def _peak_text(change: PeakChange) -> str:
    text = f"peak {_arrow(change.in_order)} in program order"
    if change.xla is None:
        return text
    is_worse = "" if is_worth_it(*change.xla) else ", so XLA:CPU probably needs no less memory than for the plain step"
    return f"{text}, {_arrow(change.xla)} by the XLA:CPU model{is_worse}"


def _arrow(peaks: tuple[int, int]) -> str:
    before, after = peaks
    return f"{format_bytes(before)} -> {format_bytes(after)}"


def _amounts(change: PeakChange) -> list[tuple[str, int]]:
    amounts = [("peak_bytes_before", change.in_order[0]), ("peak_bytes_after", change.in_order[1])]
    if change.xla is not None:
        amounts += [("xla_peak_bytes_before", change.xla[0]), ("xla_peak_bytes_after", change.xla[1])]
    return amounts
