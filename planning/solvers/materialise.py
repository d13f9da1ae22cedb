"""From what is to be saved at a cut to copies: each missing input is computed again at its first need, with what it
needs in turn, and kept to its last use."""

from __future__ import annotations

from collections.abc import Collection

from .problem import Pair, Problem


def at_first_need(problem: Problem, cut: int, alive: Collection[int], again: Collection[int]) -> frozenset[Pair]:
    """Copies behind the cut of the operations `again`, for what is not `alive` there."""
    maker: list[int] = problem.maker.tolist()
    ready, pairs = set(alive), set[Pair]()
    for t in range(cut + 1, len(problem)):
        stack = [v for v in problem.reads_of(t) if v not in ready and maker[v] <= cut]
        while stack:
            v = stack.pop()
            op = maker[v]
            if v in ready or op not in again:
                continue
            ready.update(problem.makes_of(op))
            if t >= problem.earliest:
                pairs.add((t, op))
            stack += [u for u in problem.reads_of(op) if u not in ready]
    return frozenset(pairs)
