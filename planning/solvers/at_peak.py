"""Greedy at the peak, as XLA's rematerialisation pass does it: where most is alive, compute again the storage that
frees most bytes for its cost, and hold its inputs instead; until the peak is within the budget."""

from __future__ import annotations

from .problem import Pair, Problem
from .sequence import Evaluation, evaluate, sequence_of


def at_peak(problem: Problem, budget: int) -> frozenset[Pair] | None:
    """None where nothing at the peak helps any more. Each step evaluates the whole order: for small problems."""
    pairs = set[Pair]()
    found = evaluate(problem, sequence_of(problem, pairs))
    while found.peak_bytes > budget:
        for candidate in _candidates(problem, pairs, found):
            pairs.add(candidate)
            after = evaluate(problem, sequence_of(problem, pairs))
            if after.peak_bytes < found.peak_bytes or _higher(after, found, budget):
                found = after
                break
            pairs.remove(candidate)
        else:
            return None
    return frozenset(pairs)


def _higher(after: Evaluation, before: Evaluation, budget: int) -> bool:
    """Whether less is above the budget, where several places peak alike."""
    return after.peak_bytes == before.peak_bytes and _over(after, budget) < _over(before, budget)


def _over(found: Evaluation, budget: int) -> int:
    over = found.bytes_at - budget
    return int(over[over > 0].sum())


def _candidates(problem: Problem, pairs: set[Pair], found: Evaluation) -> list[Pair]:
    """Copies before the next use of what is alive at the peak and not used there, the most bytes for its cost first."""
    n, stage = len(problem), _stage_of(problem, pairs, found.position)
    runs = dict[int, list[int]]()
    for t, op in pairs:
        runs.setdefault(op, []).append(t)
    listed = list[tuple[float, Pair]]()
    for v in range(len(problem.sizes)):
        op, size = int(problem.maker[v]), int(problem.sizes[v])
        if op >= stage or not problem.again[op] or size == 0:
            continue
        uses = sorted({t for user in problem.users_of(v) for t in (user, *runs.get(user, ()))})
        later = next((t for t in uses if t >= stage), n if problem.output[v] else None)
        if later is None or later <= stage or later < problem.earliest:
            continue
        # Computed again on the way there: it is not alive at the peak for this use.
        if not any(stage <= t <= later for t in runs.get(op, ())):
            listed.append((-size / max(1, int(problem.costs[op])), (later, op)))
    return [pair for _, pair in sorted(listed)]


def _stage_of(problem: Problem, pairs: set[Pair], position: int) -> int:
    """The stage of a position in the flat order."""
    at = position
    counts = [0] * (len(problem) + 1)
    for t, _ in pairs:
        counts[t] += 1
    for t, count in enumerate(counts):
        if at <= count:
            return t
        at -= count + 1
    return len(problem)
