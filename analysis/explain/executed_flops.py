"""Count an operation's FLOPs over all iterations, and its runs in the surrounding loops."""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation

from ...dialects.stablehlo.control import WhileOp
from ...rules.flops import flops
from ...support.operations import operations_around, operations_in
from ..step.counted_loops import trips_of


def executed_flops(op: Operation) -> int:
    """Return the FLOPs of the operation, including every iteration of counted loops.

    In contrast, `rules/flops.py` includes one iteration of each loop, like XLA's cost analysis. For a loop inside
    another kind of region, such as a branch, this function also includes only one iteration.
    """
    if not isinstance(op, WhileOp):
        return flops(op)
    inside = [inner for region in op.regions for block in region.blocks for inner in operations_in(block)]
    return trips_of(op) * sum(map(executed_flops, inside))


def runs_of(op: Operation) -> int:
    """Return the number of times that the operation runs in one step. This is the product of the surrounding loops'
    trip counts."""
    return prod(map(trips_of, operations_around(op)))
