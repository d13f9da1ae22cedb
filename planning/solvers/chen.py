"""Segments of equal size (Chen et al., "Training deep nets with sublinear memory cost", 2016): keep the values that
cross segment boundaries, and recompute the others at their first use in the backward pass.

About sqrt(n) segments are optimal on chains; every number up to about 3 sqrt(n) is tried.
"""

from __future__ import annotations

from math import isqrt

from .materialise import at_first_need
from .problem import Pair, Problem
from .sequence import evaluate, sequence_of


def chen(problem: Problem, budget: int) -> frozenset[Pair] | None:
    """The cheapest segmentation within the budget, or None."""
    best, cheapest = None, -1
    for count in range(2, 3 * isqrt(max(4, problem.earliest)) + 2):
        pairs = segmented(problem, count)
        if any(not problem.again[op] for _, op in pairs):
            continue
        cost = problem.cost_of(pairs)
        if best is not None and cost >= cheapest:
            continue
        if evaluate(problem, sequence_of(problem, pairs)).peak_bytes <= budget:
            best, cheapest = pairs, cost
    return best


def segmented(problem: Problem, count: int) -> frozenset[Pair]:
    """Copies of all but the last of `count` segments of the forward pass, at their first uses in the backward pass."""
    first = problem.earliest
    segment = [op * count // max(1, first) for op in range(first)]
    kept, again = set[int](), {op for op in range(first) if segment[op] < count - 1 and problem.again[op]}
    for v in range(len(problem.sizes)):
        maker = int(problem.maker[v])
        if maker < first and (
            maker not in again or any(op < first and segment[op] != segment[maker] for op in problem.users_of(v))
        ):
            kept.add(v)
    return at_first_need(problem, first - 1, kept, again)
