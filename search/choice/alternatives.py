"""Choose between the results of several runs of the stages, which `rewriting/rewrite.py` runs with different options.

The result of a run includes the `Alternative` that may be better, if there is one. Each function below compares the
results of two runs.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from xdsl.dialects.builtin import ModuleOp

from ...options.memory_model import ORDER, XLA
from ...planning.objective import is_worth_it
from ...transforms.preparation.timelines import peaks_of
from ..outcome import RewriteResult
from .unchanged_steps import reword_for_cut_loops
from .vetoes import why_calls_stay_inlined


class Alternative(Enum):
    """Another run of the stages that may give a better result than the preceding run. The value of each member is the
    reason to try it."""

    LOOPS_ALONE = "copies lower no peak, but loops were cut"
    FUNCTIONS_INLINED = "restored calls may raise a peak"


def is_better_with_joined_branches(
    joined: RewriteResult, separate: RewriteResult, module: ModuleOp, keeps_barriers: bool
) -> bool:
    """Return whether a run with joined branches lowers the highest peak of the functions, under the memory model of the
    target.

    Args:
        joined: The result with joined branches. It is not better if it leaves the module unchanged.
        separate: The result without joined branches.
        module: The original module.
        keeps_barriers: Whether the target keeps barriers, so that peaks are computed under the XLA:CPU model.

    Raises:
        Refusal: A function has dynamic shapes.
    """
    if joined.module is None:
        return False
    model = XLA if keeps_barriers else ORDER
    compared = joined.module, separate.module or module
    peak, separate_peak = (max(peaks_of(each, model).values(), default=0) for each in compared)
    return is_worth_it(separate_peak, peak)


def loops_alone(vetoed: RewriteResult, alone: RewriteResult) -> RewriteResult:
    """Return the result in which only loops are cut, with the remarks of the run whose copies lower no peak.

    Args:
        vetoed: The result whose copies lower no peak.
        alone: The result without copies outside loops.
    """
    remarks = reword_for_cut_loops(vetoed.outcome.remarks)
    return replace(alone, outcome=replace(alone.outcome, remarks=remarks))


def unless_calls_raise_peak(restored: RewriteResult, inlined: RewriteResult) -> RewriteResult:
    """Return the result with restored calls. If restored calls raise a peak, return the inlined result instead, with a
    remark.

    Args:
        restored: The result with restored calls, which changes the module.
        inlined: The result with inlined functions.
    """
    assert restored.module is not None, "calls were restored in the module"
    veto = None if inlined.module is None else why_calls_stay_inlined(restored.module, inlined.module)
    return restored if veto is None else inlined.with_remarks(veto)


def may_be_better_with_calls_in_place(result: RewriteResult) -> bool:
    """Return whether restored calls have lost foreign attributes. In this case, a run that leaves these calls in place
    is preferred, unless that run is refused."""
    return bool(result.outcome.restored_calls.lost)
