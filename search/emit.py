"""Emit a step after its copies have been made: CSE, verify, lower, stagger; and check whether the result lowers a peak.

Restored calls may raise the peak of an executor that keeps program order: a call needs all its operands and results at
one time, while its operations could be spread out, and equal operations of different calls are not merged. XLA inlines
calls, merges equal operations and has an order of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.memory.peaks import Peaks
from ..analysis.memory.timeline import peak_in_order
from ..analysis.step.order import functions_of
from ..options.recompute_options import Emission
from ..planning.objective import WORTH_IT
from ..support.diagnostics import Remark
from ..support.timing import part
from ..support.units import readable_bytes
from ..transforms.calls.origins import Origins
from ..transforms.clone import Cloned
from ..transforms.cse import cse
from ..transforms.lower import lower
from ..transforms.phase import Steps, numbered_steps
from ..transforms.preparation.timelines import flat
from ..transforms.stagger import stagger
from ..transforms.verify import verify, verify_input
from .choose import why_worse
from .left_steps import step_left


def emit(work: ModuleOp, origins: Origins, emission: Emission, before: Steps) -> Steps:
    """Clean up, verify and lower the module in place. Calls are restored later.

    Args:
        work: The module with copies and tokens.
        origins: The calls that inlined operations come from.
        emission: The form of the result.
        before: The steps of the module.

    Returns:
        The steps of the result.
    """
    phases_of = {function: step.phases for function, step in before}
    with part("cse"):
        if emission.calls:
            origins.follow_copies(work)
            cse(work, phases_of, origins.instance_of)
        else:
            cse(work, phases_of)
    if not emission.is_ordered:
        # Verify while there are tokens: lowering drops them, and only program order remains.
        with part("verify"):
            verify(work)
    with part("lower"):
        lower(work, emission.target)
    if emission.staggered and emission.target == "stablehlo":
        with part("stagger"):
            stagger(work, phases_of=phases_of)
    steps = numbered_steps(work, bare=True)
    with part("verify"):
        if emission.is_ordered:
            verify(work, steps)
        else:
            verify_input(work)
    return steps


def replace_content(module: ModuleOp, work: ModuleOp) -> None:
    """Erase the operations of the module, and move those of `work` into it."""
    for op in list(module.ops):
        op.detach()
        op.erase()
    for op in list(work.ops):
        op.detach()
        module.body.block.add_op(op)


def peaks_of(steps: Steps, cloned: Cloned) -> Mapping[FuncOp, Peaks]:
    """Compute the peaks of the emitted steps that have copies."""
    copied = {clone_of_step.function for clone_of_step in cloned.steps if clone_of_step.plan.copies}
    return {function: Peaks.written(function, step) for function, step in steps if function.sym_name.data in copied}


def why_all_worse(peaks: Mapping[FuncOp, Peaks], cloned: Cloned, emission: Emission) -> Remark | None:
    """Return a remark with the reason that no emitted step is an improvement; None if one is, or if a copy is
    forced."""
    remark = None
    for function, after in peaks.items():
        before = cloned.before.get(function.sym_name.data)
        reason = None if before is None else why_worse(before, after, emission.is_ordered)
        if reason is None:
            return None
        remark = step_left(function, reason)
    return remark


STAY = "functions stay inlined: called again they would take the peak in program order from {inlined} to {called}"
"""The remark on functions whose calls are not restored."""


def in_order(module: ModuleOp) -> Mapping[str, int]:
    """Compute the peak of each function of a flat module, in program order and in bytes."""
    return {function.sym_name.data: peak_in_order(function) for function in functions_of(module)}


def may_cost(called: ModuleOp, before: Mapping[str, int]) -> bool:
    """Return whether restored calls may raise a peak, so that the module has to be compared with one without calls.

    Args:
        called: The module with restored calls.
        before: The peaks before calls were restored, in bytes by function.
    """
    module = flat(called)
    peaks = in_order(module)
    cse(module)
    merged = in_order(module)
    return any(_is_more(peak, min(before[name], merged[name])) for name, peak in peaks.items())


def why_inlined(called: ModuleOp, inlined: ModuleOp) -> Remark | None:
    """Return a remark on the first function with a lower peak if all calls are inlined; None if there is no such
    function."""
    least = in_order(flat(inlined))
    for function in functions_of(module := flat(called)):
        name = function.sym_name.data
        if _is_more(peak := in_order(module)[name], least[name]):
            return Remark(function, STAY.format(inlined=readable_bytes(least[name]), called=readable_bytes(peak)))
    return None


def _is_more(peak: int, than: int) -> bool:
    return peak > than * (1 + WORTH_IT)
