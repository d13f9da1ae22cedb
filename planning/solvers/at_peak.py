"""Greedy at the peak, as in XLA's rematerialisation pass: at the peak, recompute the storage that frees the most bytes
for its cost, and keep its inputs live instead, until the peak is within the budget."""

from __future__ import annotations

from .problem import Pair, Problem
from .sequence import Evaluation, evaluate, sequence_of


def at_peak(problem: Problem, budget: int) -> frozenset[Pair] | None:
    """Copies within the budget; None if no candidate lowers the peak. Each step evaluates the whole order: for small
    problems."""
    pairs = set[Pair]()
    current = evaluate(problem, sequence_of(problem, pairs))
    while current.peak_bytes > budget:
        for candidate in _candidates(problem, pairs, current):
            pairs.add(candidate)
            after = evaluate(problem, sequence_of(problem, pairs))
            if after.peak_bytes < current.peak_bytes or _is_better(after, current, budget):
                current = after
                break
            pairs.remove(candidate)
        else:
            return None
    return frozenset(pairs)


def _is_better(after: Evaluation, before: Evaluation, budget: int) -> bool:
    """Whether the overflow is lower at an equal peak, as with several equal peaks."""
    return after.peak_bytes == before.peak_bytes and _overflow(after, budget) < _overflow(before, budget)


def _overflow(evaluation: Evaluation, budget: int) -> int:
    over = evaluation.bytes_at - budget
    return int(over[over > 0].sum())


def _candidates(problem: Problem, pairs: set[Pair], evaluation: Evaluation) -> list[Pair]:
    """Copies in front of the next use of storages that are live at the peak but not used there, the most bytes per cost
    first."""
    n, stage = len(problem), _stage_of(problem, pairs, evaluation.position)
    runs = dict[int, list[int]]()
    for t, op in pairs:
        runs.setdefault(op, []).append(t)
    candidates = list[tuple[float, Pair]]()
    for v in range(len(problem.sizes)):
        op, size = int(problem.maker[v]), int(problem.sizes[v])
        if op >= stage or not problem.again[op] or size == 0:
            continue
        uses = sorted({t for user in problem.users_of(v) for t in (user, *runs.get(user, ()))})
        later = next((t for t in uses if t >= stage), n if problem.output[v] else None)
        if later is None or later <= stage or later < problem.earliest:
            continue
        # A copy between the peak and this use exists already: the storage is not live at the peak for this use.
        if not any(stage <= t <= later for t in runs.get(op, ())):
            candidates.append((-size / max(1, int(problem.costs[op])), (later, op)))
    return [pair for _, pair in sorted(candidates)]


def _stage_of(problem: Problem, pairs: set[Pair], position: int) -> int:
    """The stage of a position in the flat order."""
    remaining = position
    counts = [0] * (len(problem) + 1)
    for t, _ in pairs:
        counts[t] += 1
    for t, count in enumerate(counts):
        if remaining <= count:
            return t
        remaining -= count + 1
    return len(problem)
