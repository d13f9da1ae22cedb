"""Whether a step, as it is written, needs less than it did."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.func import FuncOp

from ...analysis.copies.choose import why_worse
from ...analysis.memory.peaks import Peaks
from ...dialects.diagnostics import Remark
from ...options.recompute_options import Emission
from ..clone import Cloned
from ..phase import Steps
from .carry_out import LEFT


def peaks_of(steps: Steps, cloned: Cloned) -> Mapping[FuncOp, Peaks]:
    """Of what is written, where it has copies."""
    copied = {done.function for done in cloned.steps if done.plan.copies}
    return {function: Peaks.written(function, step) for function, step in steps if function.sym_name.data in copied}


def why_all_worse(peaks: Mapping[FuncOp, Peaks], cloned: Cloned, emission: Emission) -> Remark | None:
    """Why none of the steps, as written, is worth it; None where one is, or where somebody has forced a copy."""
    found = None
    for function, after in peaks.items():
        before = cloned.before.get(function.sym_name.data)
        reason = None if before is None else why_worse(before, after, emission.is_ordered)
        if reason is None:
            return None
        found = Remark(function, f"{reason}: {LEFT}")
    return found
