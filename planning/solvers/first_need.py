"""Derive copies from the storages that are saved at a cut, an operation of the step. Each missing operand is recomputed
at its first use, after its own missing operands, and is kept until its last use. `problem.py` defines storages and
stages."""

from __future__ import annotations

from collections.abc import Collection

from .problem import Pair, Problem


def copies_at_first_need(
    problem: Problem,
    cut: int,
    alive: Collection[int],
    copyable: Collection[int],
    end: int | None = None,
    live_at_end: Collection[int] = (),
) -> frozenset[Pair]:
    """Return the copies that are needed after a cut, each before the first use of its result.

    Args:
        problem: The problem.
        cut: The operation of the cut.
        alive: The storages that are saved at the cut.
        copyable: The operations that may be copied.
        end: The last stage of copies; the end of the step if not given.
        live_at_end: Storages that must be live at `end`. Those without an earlier use are recomputed there.
    """
    maker: list[int] = problem.makers.tolist()
    ready, pairs = set(alive), set[Pair]()
    count = len(problem)
    end = count if end is None else end
    for t in range(cut + 1, end + 1):
        needed = problem.operands_of(t) if t < count else ()
        if t == end:
            needed = (*needed, *live_at_end)
        stack = [v for v in needed if v not in ready and maker[v] <= cut]
        while stack:
            v = stack.pop()
            op = maker[v]
            if v in ready or op not in copyable:
                continue
            ready.update(problem.results_of(op))
            if problem.allows_forward_copies or t >= problem.earliest_stage:
                pairs.add((t, op))
            stack += [u for u in problem.operands_of(op) if u not in ready]
    return frozenset(pairs)
