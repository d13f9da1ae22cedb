"""Emit a step after its copies have been made: CSE, lower, stagger, verify; and compare its peaks with the unchanged
step."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.memory.peaks import Peaks
from ..analysis.step.graph_of import Numbered
from ..analysis.step.step import Step
from ..options.recompute_options import Emission
from ..support.diagnostics import Remark
from ..support.timing import part
from ..transforms.calls.origins import Origins
from ..transforms.clone import Cloned
from ..transforms.cse import cse
from ..transforms.lower import lower
from ..transforms.phase import Steps, numbered_steps
from ..transforms.stagger import stagger
from ..transforms.verify import verify, verify_input
from .choose import why_worse
from .left_steps import remark_on_left_step


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
    graphs = dict[FuncOp, Numbered]()
    with part("cse"):
        if emission.calls:
            origins.follow_copies(work)
            cse(work, phases_of, origins.instance_of)
        else:
            cse(work, phases_of)
    if not emission.keeps_barriers:
        # Verify while there are tokens: lowering drops them, and only program order remains.
        with part("verify"):
            verify(work)
    with part("lower"):
        lower(work, emission.target)
    if emission.staggered and emission.target == "stablehlo":
        with part("stagger"):
            stagger(work, phases_of=phases_of, unchanged=graphs)
    steps = numbered_steps(work, bare=True, graphs=graphs)
    with part("verify"):
        if emission.keeps_barriers:
            verify(work, steps)
        else:
            verify_input(work)
    return steps


def replace_content(module: ModuleOp, work: ModuleOp) -> None:
    """Replace the operations of the module by the operations of `work`."""
    for op in list(module.ops):
        op.detach()
        op.erase()
    for op in list(work.ops):
        op.detach()
        module.body.block.add_op(op)


def peaks_of(steps: Steps, cloned: Cloned) -> Mapping[FuncOp, Peaks]:
    """Compute the peaks of the emitted steps that have copies."""
    copied = {clone_of_step.function for clone_of_step in cloned.steps if clone_of_step.plan.copies}
    return {
        function: _emitted_peaks(function, step, cloned.forecasts.get(name))
        for function, step in steps
        if (name := function.sym_name.data) in copied
    }


def _emitted_peaks(function: FuncOp, step: Step, forecast: Peaks | None) -> Peaks:
    """Return the peaks of an emitted step.

    CSE may extend live ranges beyond the plan. If it raised no peak above the forecast, the peak under the model of
    XLA:CPU is copied from the forecast.
    """
    peaks = Peaks.of_step(function, step)
    if forecast is None or peaks.in_order > forecast.in_order or peaks.eager > forecast.eager:
        return peaks
    return Peaks.known(peaks.in_order, peaks.eager, lambda: forecast.xla)


def why_all_worse(peaks: Mapping[FuncOp, Peaks], cloned: Cloned, emission: Emission) -> Remark | None:
    """Return a remark with the reason that no emitted step is an improvement; None if one is, or if a copy is
    forced."""
    remark = None
    for function, after in peaks.items():
        before = cloned.before.get(function.sym_name.data)
        reason = None if before is None else why_worse(before, after, emission.keeps_barriers)
        if reason is None:
            return None
        remark = remark_on_left_step(function, reason)
    return remark
