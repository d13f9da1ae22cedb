"""Plans for many budgets, and for the least one: curves that go one way.

A plan for one budget is one for every larger one, and one that stays below a smaller one is one for that. So of all
plans found each budget gets the cheapest that keeps it, of equally cheap ones the lowest: over rising budgets cost only
falls and peaks only rise. What is proved for a budget is proved for every smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from .problem import Pair, Problem
from .result import Refusal, Result, Stop, never
from .search import Search
from .sequence import evaluate, sequence_of
from .working_set import largest_working_set

Outcome = Result | Refusal
Solved = Callable[[int, Iterable[frozenset[Pair]]], Outcome]
"""From a budget and plans to start from."""
STEPS = 16
"""Budgets that are tried to find the least."""
CLOSE = 1 / 1000
"""Of the plain peak: so near to the least budget the search ends."""


NOT_TRIED = Refusal("not tried: the search was stopped before", False, 0)


def sweep(budgets: Sequence[int], solved: Solved, stop: Stop = never) -> list[Outcome]:
    """An outcome for each budget, in their order; the lowest is solved first, and its plan a start for the next.

    Once it is to `stop`, no further budget is tried: each gets the cheapest of what was found, which is not finished.
    """
    found, plans = dict[int, Outcome](), list[frozenset[Pair]]()
    for budget in sorted(set(budgets)):
        found[budget] = outcome = NOT_TRIED if stop() else solved(budget, plans[-1:])
        if isinstance(outcome, Result):
            plans.append(outcome.pairs)
    results = [one for one in found.values() if isinstance(one, Result)]
    chosen, bound, by = dict[int, Outcome](), 0.0, ""
    for budget in sorted(found, reverse=True):
        chosen[budget] = one = _cheapest(found[budget], results, budget)
        if isinstance(one, Result) and one.bound_percent >= bound:
            bound, by = one.bound_percent, one.bound_by
        elif isinstance(one, Result):
            chosen[budget] = replace(one, bound_percent=min(bound, one.percent), bound_by=by)
    return [chosen[budget] for budget in budgets]


def _cheapest(own: Outcome, results: Iterable[Result], budget: int) -> Outcome:
    within = [result for result in results if result.peak_bytes <= budget]
    if not within:
        return own
    best = min(within, key=lambda one: (one.extra_cost, one.peak_bytes))
    bound, by = (own.bound_percent, own.bound_by) if isinstance(own, Result) else (0.0, "nothing is free")
    finished = own.finished if isinstance(own, Result) else own is not NOT_TRIED and best.finished
    return replace(best, budget=budget, bound_percent=min(bound, best.percent), bound_by=by, finished=finished)


def least_budget(problem: Problem, stop: Stop = never) -> int:
    """The least budget for which the greedy finds a plan, by bisection from the working set on; each plan found is the
    start of the next search."""
    pairs, firsts = frozenset[Pair](), sorted({problem.earliest, 0 if problem.everywhere else problem.earliest})
    searches = [Search(problem, first) for first in reversed(firsts)]
    high = evaluate(problem, sequence_of(problem, pairs)).peak_bytes
    low, plain = largest_working_set(problem).bytes - 1, high
    for _ in range(STEPS):
        if high - low <= max(1, int(CLOSE * plain)) or stop():
            break
        middle = (low + high) // 2
        within = next(filter(None, (_kept(search, middle, pairs) for search in searches)), None)
        if within:
            high, pairs = min(within, key=lambda one: one[0])
        else:
            low = middle
    return high


def _kept(search: Search, budget: int, pairs: frozenset[Pair]) -> list[tuple[int, frozenset[Pair]]]:
    """The peaks and plans within the budget that the greedy gets to, from a plan and from nothing."""
    tried = [search.repaired(budget, start) for start in (pairs, frozenset[Pair]())]
    peaks = [
        (evaluate(search.problem, sequence_of(search.problem, one)).peak_bytes, one) for one in tried if one is not None
    ]
    return [peak for peak in peaks if peak[0] <= budget]
