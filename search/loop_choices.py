"""The loop schedules that a search under a budget tries.

The first schedule leaves loops uncut, so that they store all stacks. The next schedules are corners of the trade-off
curve in `local_choices/loop_cut_curve.py`: they store fewer and fewer bytes, at the cost of more work. A schedule with
the smallest sets of stacks follows. The last schedule saves the carries of a loop only at intervals of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from ..analysis.request.in_loops import repetition_predicate
from ..analysis.step.order import functions_of
from ..dialects.stablehlo.control import WhileOp
from ..options.loop_schedule import SMALLEST_STACKS, UNCUT, LoopSchedule
from ..options.recompute_options import RecomputeOptions
from ..support.operations import every_operation
from .local_choices.loop_cut_curve import Corner, corners
from .prepare import flatten_with_device_steps

MAX_TRIED_CORNERS = 5
"""Maximum number of sets of stacks to try between all stacks and the smallest set. The module is prepared and planned
once for each set. If there are more corners, evenly spaced ones are tried."""
PERIODIC = LoopSchedule("periodic")
"""The schedule that saves carries at the interval with the fewest saved bytes."""


def has_loops(module: ModuleOp) -> bool:
    """Return whether the module has loops that may be cut."""
    return any(isinstance(op, WhileOp) for op in every_operation(module))


def loop_choices(module: ModuleOp, options: RecomputeOptions) -> Sequence[LoopSchedule]:
    """Return the schedules to try, from the one with the least work to the one with the fewest bytes. If the user gives
    a schedule, its only alternative is to leave loops uncut."""
    schedule = options.loop_schedule
    if schedule == UNCUT or not has_loops(module):
        return (UNCUT,)
    if schedule != SMALLEST_STACKS:
        return (UNCUT, schedule)
    flat, _ = flatten_with_device_steps(module, options.selection)
    may_repeat = repetition_predicate(flat.module, flat.selection)
    corners_of = [corners(function.body.block, may_repeat) for function in functions_of(flat.module)]
    several = [choices for choices in corners_of if len(choices) > 1]
    if not several:
        # There are no loops, or only loops in per-device bodies, which are outlined later.
        return (UNCUT, SMALLEST_STACKS)
    between = _spread_corners(several[0]) if len(several) == 1 else ()
    return (UNCUT, *between, SMALLEST_STACKS, PERIODIC)


def _spread_corners(choices: Sequence[Corner]) -> Sequence[LoopSchedule]:
    """Return at most `MAX_TRIED_CORNERS` schedules, evenly spaced among the corners of the curve, except its two
    ends."""
    inner = [choice for choice in choices[1:-1] if choices[-1].kept_bytes < choice.kept_bytes < choices[0].kept_bytes]
    every = max(1, -(-len(inner) // MAX_TRIED_CORNERS))
    return [LoopSchedule("cut", keep=choice.kept_bytes) for choice in inner[::every]]
