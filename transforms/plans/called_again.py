"""Whether functions are called again, or the step stays inlined, where program order is all that counts.

A call needs what it reads and what it returns at one time, where its operations may stand apart; and twins of different
calls are not merged. XLA inlines calls, merges twins and has an order of its own; an executor without a scheduler pays.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

from ...analysis.memory.timeline import timeline
from ...analysis.step.functions import functions_of
from ...analysis.step.phases import phases
from ...dialects.diagnostics import Remark
from ...planning.objective import WORTH_IT
from ..cse import cse
from .counted import flat

STAY = "functions stay inlined: called again they would take the peak in program order from {inlined} to {called} bytes"


def in_order(module: ModuleOp) -> Mapping[str, int]:
    """The peak of each function of a flat module."""
    return {one.sym_name.data: timeline(one, phases(one)).peak_bytes for one in functions_of(module)}


def may_cost(called: ModuleOp, before: Mapping[str, int]) -> bool:
    """Whether it is worth a look at the step without calls. `before`: the peaks before functions were called again."""
    module = flat(called)
    peaks = in_order(module)
    cse(module)
    merged = in_order(module)
    return any(_is_more(peak, min(before[name], merged[name])) for name, peak in peaks.items())


def why_inlined(called: ModuleOp, inlined: ModuleOp) -> Remark | None:
    """Why the step without calls is better, at the first function that needs less in it; None where it is not."""
    least = in_order(flat(inlined))
    for function in functions_of(module := flat(called)):
        name = function.sym_name.data
        if _is_more(peak := in_order(module)[name], least[name]):
            return Remark(function, STAY.format(inlined=least[name], called=peak))
    return None


def _is_more(peak: int, than: int) -> bool:
    return peak > than * (1 + WORTH_IT)
