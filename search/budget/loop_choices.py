"""Candidates for cutting loops under a budget: which loops, and how much of their stacks is saved.

The candidates range from uncut loops over the corners of `analysis/copies/loop_cuts.py` to the smallest sets of stacks,
and further to carries that are saved only at intervals of several iterations.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from ...analysis.copies.loop_cuts import Corner, corners
from ...analysis.request.in_loops import repeatable
from ...analysis.step.order import functions_of
from ...options.loop_schedule import Loops
from ...options.recompute_options import RecomputeOptions
from ..prepare import flattened

CORNERS = 5
"""Number of sets of stacks tried between all of them and the smallest."""
PERIODIC = "periodic(auto)"


def loop_choices(module: ModuleOp, options: RecomputeOptions) -> Sequence[Loops]:
    """List the choices from the least work to the fewest bytes; a schedule that the user gave is tried beside uncut
    loops only."""
    loops = options.loops
    if loops is False:
        return (False,)
    if loops is not True:
        return (False, loops)
    work, selection = flattened(module, options.selection)
    may_repeat = repeatable(work, selection)
    corners_of = [corners(function.body.block, may_repeat) for function in functions_of(work)]
    several = [choices for choices in corners_of if len(choices) > 1]
    if not several:
        # No loops, or in bodies per device alone, which are functions only later.
        return (False, True)
    between = _kept(several[0]) if len(several) == 1 else ()
    return (False, *between, True, PERIODIC)


def loops_option(loops: Loops) -> str:
    """Print the choice in the syntax of pass options."""
    return f"loops={str(loops).lower()}" if isinstance(loops, bool) else f'loops="{loops}"'


def _kept(choices: Sequence[Corner]) -> Sequence[Loops]:
    """Return at most `CORNERS` choices, spread over the range of bytes."""
    inner = [choice for choice in choices[1:-1] if choices[-1].kept_bytes < choice.kept_bytes < choices[0].kept_bytes]
    every = max(1, -(-len(inner) // CORNERS))
    return [f"keep({choice.kept_bytes}B)" for choice in inner[::every]]
