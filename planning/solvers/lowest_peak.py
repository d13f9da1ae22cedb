"""Search for the plan with the lowest peak, for the budget `min` and for the messages of refused budgets.

    lowest_peak_plan(problem)             the plan with the lowest peak that all methods together find
    greedy_lowest_peak_plan(problem)      the plan of the greedy search alone

Four methods run one after the other. Each of them starts from the plan of the preceding method and lowers its peak. The
search ends when the peak is equal to the proven lower bound:

1. the greedy search, by bisection above the largest working set;
2. ruin and recreate, which needs only milliseconds for a plan below a limit, because it starts from the best plan so
   far;
3. the portfolio, which is tried for few limits, because its cuts find plans that differ from the best plan in most
   copies;
4. for a small problem, an exhaustive search of all sets of live storages.

Each method tries at most a fixed number of rounds or limits, so the plan is deterministic unless `stop` ends the
search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf

from .effort import LARGE_PROBLEM, SMALL_PROBLEM, Effort
from .incumbent import Incumbent
from .live_sets import TooManyStates, copies_within
from .local_search import Annealing, LocalSearch
from .problem import Pair, Problem
from .result import Result, Stop, never_stop
from .sequence import evaluate, sequence_of
from .solvers_by_name import solve
from .two_point_bound import two_point_bound
from .working_set import largest_working_set

MAX_GREEDY_LIMITS = 16
"""Maximum number of limits that the greedy search tries. Since each halves the interval, `GREEDY_TOLERANCE` is reached
after at most ten."""
GREEDY_TOLERANCE = 1 / 1000
"""Tolerance of the greedy search, as a share of the peak of the plain step."""
ANNEALED_LIMITS, SOLVED_LIMITS, SEARCHED_LIMITS = 16, 2, 4
"""Maximum numbers of limits that ruin and recreate, the portfolio, and the search of sets of live storages try."""
MAX_FAILURES = 3
"""Maximum number of limits below the best plan for which a method finds no plan. A failure takes much longer than a
success."""
TOLERANCE = 1 / 100
"""If the interval between a limit without a plan and the best peak is at most this share of the peak, the next limit is
one byte below the peak."""
FIRST_REDUCTION = 1 / 50
"""The share of the best peak by which the limit falls after the first success. This reduction doubles with each further
success, because the greedy search is usually close to the lowest peak."""
ANNEALING_WORK = 150_000
"""The work of one run of ruin and recreate: the number of rounds times the number of operations and four times the
number of copies, which determine the time of a round."""
MIN_ROUNDS, MAX_ROUNDS = 30, 1500
"""Minimum and maximum number of rounds of one run of ruin and recreate."""


@dataclass(frozen=True)
class LowPeak:
    """A plan with a low peak: its copies, and its peak in bytes."""

    peak_bytes: int
    pairs: frozenset[Pair]

    @staticmethod
    def of(problem: Problem, pairs: frozenset[Pair]) -> LowPeak:
        """Return the plan with these copies and its peak."""
        return LowPeak(evaluate(problem, sequence_of(problem, pairs)).peak_bytes, pairs)


Lower = Callable[[int, LowPeak], frozenset[Pair] | None]
"""A method: a function that takes a limit in bytes and the best plan so far, and returns copies that may be within the
limit, or None if it finds none."""


def lowest_peak_plan(problem: Problem, stop: Stop = never_stop) -> LowPeak:
    """Return the plan with the lowest peak that all methods together find."""
    best = greedy_lowest_peak_plan(problem, stop)
    bound_bytes = max(largest_working_set(problem).bytes, two_point_bound(problem).bytes)
    methods = list[tuple[Lower, int]]()
    if len(problem) <= LARGE_PROBLEM:
        first_stage = 0 if problem.allows_forward_copies else problem.earliest_stage
        annealed = partial(_annealed, LocalSearch(problem, first_stage), stop)
        methods += [(annealed, ANNEALED_LIMITS), (partial(_solved, problem, stop), SOLVED_LIMITS)]
    if len(problem) <= SMALL_PROBLEM:
        methods.append((partial(_searched, problem, stop), SEARCHED_LIMITS))
    for method, limits in methods:
        best = _lowered(problem, best, bound_bytes, method, limits, stop)
    return best


def _lowered(problem: Problem, best: LowPeak, bound_bytes: int, method: Lower, limits: int, stop: Stop) -> LowPeak:
    """Lower the peak of a plan with one method.

    The first limit is one byte below the peak of the plan. After a success, the limit falls in growing steps. After a
    failure, the interval between the limit and the best peak is bisected. A failure one byte below the best peak ends
    the search.

    Args:
        problem: The problem.
        best: The plan to start from.
        bound_bytes: A lower bound on the peak of every plan.
        method: The method.
        limits: The maximum number of limits to try.
        stop: A predicate that ends the search with the best plan so far.
    """
    highest_failed, reduction, failures = bound_bytes - 1, 1, 0
    first_reduction = max(1, int(FIRST_REDUCTION * best.peak_bytes))
    for _ in range(limits):
        highest = best.peak_bytes - 1
        if highest <= highest_failed or failures == MAX_FAILURES or stop():
            break
        is_narrow = best.peak_bytes - highest_failed <= max(1, int(TOLERANCE * best.peak_bytes))
        middle = (highest_failed + best.peak_bytes) // 2
        limit = highest if is_narrow else max(middle, best.peak_bytes - reduction)
        pairs = method(limit, best)
        plan = None if pairs is None else LowPeak.of(problem, pairs)
        if plan is not None and plan.peak_bytes <= limit:
            best, reduction = plan, max(first_reduction, 2 * reduction)
        elif limit == highest:
            break
        else:
            highest_failed, reduction, failures = limit, best.peak_bytes, failures + 1
    return best


def _annealed(search: LocalSearch, stop: Stop, limit: int, best: LowPeak) -> frozenset[Pair] | None:
    """Return the first copies within the limit that ruin and recreate finds, starting from the best plan."""
    work_of_round = len(search.problem) + 4 * len(best.pairs)
    rounds = max(MIN_ROUNDS, min(MAX_ROUNDS, ANNEALING_WORK // work_of_round))
    return search.anneal(limit, best.pairs, Annealing(rounds, stop=stop, target_cost=inf))


def _solved(problem: Problem, stop: Stop, limit: int, best: LowPeak) -> frozenset[Pair] | None:
    """Return the copies that a brief search of the portfolio finds."""
    incumbent = Incumbent.until(problem, limit, stop)
    outcome = solve(problem, limit, best=incumbent, starts=[best.pairs], effort=Effort.brief())
    return outcome.pairs if isinstance(outcome, Result) else None


def _searched(problem: Problem, stop: Stop, limit: int, _: LowPeak) -> frozenset[Pair] | None:
    """Return copies from the search of all sets of live storages; None if no copies exist, or if there are too many
    sets."""
    try:
        return copies_within(problem, limit, stop)
    except TooManyStates:
        return None


def greedy_lowest_peak_plan(problem: Problem, stop: Stop = never_stop) -> LowPeak:
    """Return the plan with the lowest peak that the greedy search finds.

    Limits are bisected above the largest working set. Each plan is a start for the next limit, so a single search with
    the returned peak as its limit may find no plan.
    """
    first_stages = sorted({problem.earliest_stage, 0 if problem.allows_forward_copies else problem.earliest_stage})
    searches = [LocalSearch(problem, earliest) for earliest in reversed(first_stages)]
    best = LowPeak.of(problem, frozenset())
    # No plan was found for `infeasible` bytes.
    infeasible, tolerance = largest_working_set(problem).bytes - 1, max(1, int(GREEDY_TOLERANCE * best.peak_bytes))
    for _ in range(MAX_GREEDY_LIMITS):
        if best.peak_bytes - infeasible <= tolerance or stop():
            break
        middle = (infeasible + best.peak_bytes) // 2
        within = next(filter(None, (_plans_within(search, middle, best.pairs, stop) for search in searches)), None)
        if within:
            best = min(within, key=lambda plan: plan.peak_bytes)
        else:
            infeasible = middle
    return best


def _plans_within(search: LocalSearch, budget: int, pairs: frozenset[Pair], stop: Stop) -> list[LowPeak]:
    """Return the plans within the budget that the greedy search finds, starting from the given copies and from the
    plain step."""
    repaired = [search.repair(budget, start) for start in (pairs, frozenset[Pair]()) if not stop()]
    plans = [LowPeak.of(search.problem, plan) for plan in repaired if plan is not None]
    return [plan for plan in plans if plan.peak_bytes <= budget]
