"""Decide whether restored calls raise a peak, so that functions have to stay inlined.

Restored calls may raise the peak of an executor that keeps program order: a call needs all its operands and results at
one time, while its operations could be spread out, and equal operations of different calls are not merged. XLA inlines
calls, merges equal operations and has an order of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

from ..analysis.memory.timeline import peak_in_order
from ..analysis.step.order import functions_of
from ..planning.objective import raises_peak
from ..support.diagnostics import Remark
from ..support.units import readable_bytes
from ..transforms.cse import cse
from ..transforms.preparation.timelines import flat


def peaks_in_order(module: ModuleOp) -> Mapping[str, int]:
    """Compute the peak of each function of a flat module, in program order and in bytes."""
    return {function.sym_name.data: peak_in_order(function) for function in functions_of(module)}


def calls_may_raise_peak(called: ModuleOp, before: Mapping[str, int]) -> bool:
    """Return whether restored calls may raise a peak, so that the module has to be compared with one without calls.

    Args:
        called: The module with restored calls.
        before: The peaks before calls were restored, in bytes by function.
    """
    module = flat(called)
    peaks = peaks_in_order(module)
    cse(module)
    merged = peaks_in_order(module)
    return any(raises_peak(min(before[name], merged[name]), peak) for name, peak in peaks.items())


def why_inlined(called: ModuleOp, inlined: ModuleOp) -> Remark | None:
    """Return a remark on the first function with a lower peak if all calls are inlined; None if there is no such
    function."""
    least = peaks_in_order(flat(inlined))
    for function in functions_of(module := flat(called)):
        name = function.sym_name.data
        if raises_peak(least[name], peak := peaks_in_order(module)[name]):
            return Remark(
                function,
                "functions stay inlined: called again they would take the peak in program order from "
                f"{readable_bytes(least[name])} to {readable_bytes(peak)}",
            )
    return None
