"""All that fits the size: starts from nothing, from cuts, from Chen's segments, from another plan; each repaired and
cleaned; then ruin and recreate, then tighter bounds, until the proof meets the plan or the work is done.

    solve(problem, budget)                         a Result, or a Refusal with the proven minimum
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from . import integer_program, interval_program
from .chen import chen
from .cut_bounds import CutBounds, above_budget, many_cuts, near, second_cuts
from .flows import FlowBounds
from .incumbent import Incumbent
from .kernels.compiled import PATH
from .problem import Pair
from .refusals import ended, impossible, nothing_found, refusal
from .result import Refusal, Result
from .search import Search
from .window import windows

INTEGER = 5000
"""Up to so many operations cuts are solved as integer programs,"""
FLOWS = 2500
"""from so many on only where minimum cuts leave a gap."""
PAIRS, MOST_PAIRS = 2000, 6
"""Up to so many operations with two cuts at once, and so many of these."""
MOST_CUTS = 12
SMALL = 700
"""Up to so many, with many cuts at once."""
CLOSED = 0.01
"""Points between plan and bound at which nobody looks further."""
MET = 1e-4
OPEN, LONGER = 0.1, 3_000_000
"""Points from which on small problems are annealed once more, for so many rounds by their operations, of at most"""
MOST_ROUNDS = 8000
FAR = 1.0
"""Points between plan and bound from which on stages are chosen anew, window by window, on small problems:"""
WIDTH, WORK = 40, 1.0
"""so many at once, for so many of CP-SAT's deterministic seconds."""
PLAIN = "the plain step"


@dataclass(frozen=True)
class Effort:
    """How much work: `rounds` of ruin and recreate for each of the `seeds`; None for what suits the size. `nodes` of
    each integer program. `pairs`: whether two cuts at once are tried, `many`: and more, on small problems."""

    rounds: int | None = None
    seeds: int = 3
    nodes: int = 2000
    pairs: bool = True
    many: bool = True

    @staticmethod
    def brief() -> Effort:
        """For a compiler's pass: seconds, not a minute."""
        return Effort(rounds=20, seeds=1, nodes=300, pairs=False, many=False)

    def rounds_for(self, operations: int) -> int:
        if self.rounds is not None:
            return self.rounds
        return max(0, min(1500, 300_000 // max(1, operations))) if operations <= INTEGER else 0


def auto(best: Incumbent, starts: Iterable[Collection[Pair]] = (), effort: Effort | None = None) -> Result | Refusal:
    """Fill the incumbent, and say what it is. `starts`: plans for other budgets, or somebody's."""
    effort = effort or Effort()
    problem, budget = best.problem, best.budget
    refused = refusal(problem, budget)
    if refused is not None:
        return refused
    if best.offer((), PLAIN):
        return result_of(best, 0.0, "nothing runs again")
    search, bounds = Search(problem), bounds_for(best, effort)
    if bounds.infeasible:
        return impossible(problem, f"no schedule keeps the budget: proved by the {bounds.infeasible}", True)
    _from_starts(best, search, bounds, starts)
    if FLOWS < len(problem) <= INTEGER and not _closed(best, bounds) and not best.stopped():
        bounds = bounds_for(best, effort, closer=True)
        _from_starts(best, search, bounds, ())
    _tighten(best, search, effort, bounds)
    _anneal(best, search, effort, bounds)
    _anneal_longer(best, search, effort, bounds)
    _grow_cuts(best, search, effort, bounds)
    _many_cuts(best, search, effort, bounds)
    _windows(best, effort, bounds)
    if bounds.infeasible:
        return impossible(problem, f"no schedule keeps the budget: proved by the {bounds.infeasible}", True)
    if best.evaluation is None:
        return _before_the_gradient(best, effort)
    return result_of(best, bounds.percent, bounds.by)


def _before_the_gradient(best: Incumbent, effort: Effort) -> Result | Refusal:
    """Nothing was found with copies from `earliest` on: where they may run earlier, they are searched for there."""
    if best.stopped():
        return ended(best.problem)
    if not best.problem.everywhere or best.problem.earliest == 0:
        return nothing_found(best.problem, "auto")
    best.progress("no plan so far: with copies in the forward pass")
    return auto(replace(best, problem=replace(best.problem, earliest=0)), (), effort)


def result_of(best: Incumbent, bound: float, by: str) -> Result:
    assert best.evaluation is not None and best.pairs is not None, "only what was found is a result"
    return Result(
        problem=best.problem,
        pairs=best.pairs,
        budget=best.budget,
        peak_bytes=best.evaluation.peak_bytes,
        extra_cost=best.evaluation.extra_cost,
        percent=best.percent,
        bound_percent=min(bound, best.percent),
        bound_by=by,
        solver=best.solver,
        seconds=best.elapsed,
        path=PATH,
        finished=not best.cut_short,
    )


Bounds = CutBounds | FlowBounds


def bounds_for(best: Incumbent, effort: Effort, closer: bool = False) -> Bounds:
    """What single cuts prove, and the starts that they say; `closer`: by integer programs, whatever it takes."""
    if len(best.problem) <= (INTEGER if closer else FLOWS) and integer_program.available():
        bounds = CutBounds(best.problem, best.budget, best.stopped, best.left, effort.nodes)
    else:
        bounds = FlowBounds(best.problem, best.budget, best.stopped)
    best.progress(f"bounds by single cuts: {len(best.problem)} operations")
    bounds.single_cuts()
    best.progress(f"bound {bounds.percent:.4f} % by {bounds.by}, {best.elapsed:.1f} s")
    return bounds


def _closed(best: Incumbent, bounds: Bounds, within: float = CLOSED) -> bool:
    return best.percent - bounds.percent <= within


def _from_starts(best: Incumbent, search: Search, bounds: Bounds, starts: Iterable[Collection[Pair]]) -> None:
    problem, budget = best.problem, best.budget
    # On what is small these take milliseconds: a better one is taken along.
    met = MET if len(problem) <= FLOWS else CLOSED
    for by, pairs in [*bounds.starts, *(("another plan", frozenset(pairs)) for pairs in starts)]:
        if not _closed(best, bounds, met) and not best.stopped():
            best.offer(search.repaired(budget, pairs), by)
    if not _closed(best, bounds, met) and not best.stopped() and (len(problem) <= 4 * INTEGER or best.pairs is None):
        best.offer(search.repaired(budget), "greedy")
    if not _closed(best, bounds) and not best.stopped() and len(problem) <= INTEGER:
        best.offer(chen(problem, budget), "chen")


def _tighten(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> None:
    """Two cuts: the best one, and where what it says is above the budget; on small problems also spread ones."""
    if not isinstance(bounds, CutBounds) or bounds.best_cut < 0 or len(best.problem) > PAIRS:
        return
    if not effort.pairs:
        return
    said = next((pairs for by, pairs in bounds.starts if by == bounds.named_best), frozenset[Pair]())
    others = above_budget(best.problem, said, best.budget)[:MOST_PAIRS]
    pairs = [(bounds.best_cut, other) for other in others if other != bounds.best_cut]
    if len(best.problem) <= SMALL:
        pairs += [one for one in second_cuts(best.problem, bounds.best_cut) if one not in pairs]
    for cuts in pairs:
        if _closed(best, bounds) or best.stopped():
            return
        _with_cuts(best, search, bounds, cuts, max(1, effort.nodes // 8))


def _grow_cuts(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> None:
    """From the best cuts on, one more at a time: where what the last ones say is above the budget."""
    if not isinstance(bounds, CutBounds) or bounds.best_cut < 0 or len(best.problem) > SMALL or not effort.many:
        return
    cuts, nodes = bounds.best_cuts, max(1, effort.nodes // 8 * max(1, SMALL // len(best.problem)))
    _with_cuts(best, search, bounds, cuts, nodes)
    for _ in range(MOST_CUTS):
        if _closed(best, bounds) or best.stopped() or not bounds.starts:
            return
        others = above_budget(best.problem, bounds.starts[-1][1], best.budget)
        apart = [one for one in others if all(abs(one - cut) > near(best.problem) for cut in cuts)]
        fresh = apart or [one for one in others if one not in cuts]
        if not fresh:
            return
        cuts = tuple(sorted((*cuts, fresh[0])))
        _with_cuts(best, search, bounds, cuts, nodes)


def _many_cuts(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> None:
    """Many cuts at once, with the best plan as a start; what they say is a start for the search again."""
    if not isinstance(bounds, CutBounds) or bounds.best_cut < 0 or len(best.problem) > SMALL or not effort.many:
        return
    for every in (12, 8, 5):
        if _closed(best, bounds) or best.stopped():
            return
        _with_cuts(best, search, bounds, many_cuts(best.problem, bounds.best_cut, every), effort.nodes // 4)


def _with_cuts(best: Incumbent, search: Search, bounds: CutBounds, cuts: Collection[int], nodes: int) -> None:
    best.progress(f"bound {bounds.percent:.4f} %; {len(cuts)} cuts, {best.elapsed:.1f} s")
    bounds.seconds = best.left
    bounds.starts.clear()
    bounds.cuts(tuple(cuts), best.pairs or (), nodes)
    for by, pairs in bounds.starts:
        best.offer(search.repaired(best.budget, pairs), by)


def _anneal(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> None:
    """Ruin and recreate from the best plans, each with a seed of its own."""
    problem, rounds = best.problem, effort.rounds_for(len(best.problem))
    good = (bounds.percent + CLOSED) * problem.total_cost / 100
    starts = best.several or [("greedy", frozenset[Pair]())]
    for seed in range(effort.seeds if rounds else 0):
        if _closed(best, bounds) or best.stopped():
            return
        by, start = starts[seed % len(starts)]
        best.progress(f"ruin and recreate from {by}, seed {seed + 1}: {rounds} rounds")
        found = search.annealed(best.budget, start, rounds, seed + 1, best.stopped, good)
        best.offer(found, f"{by} + ruin and recreate".replace(" + ruin and recreate +", " +"))


def _anneal_longer(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> None:
    """Once more and slower, from the best plan: where short runs end apart, this one finds more than they do."""
    small = len(best.problem) <= SMALL and effort.many and effort.rounds is None
    if not small or _closed(best, bounds, OPEN) or best.pairs is None or best.stopped():
        return
    rounds = min(MOST_ROUNDS, LONGER // max(1, len(best.problem)))
    good = (bounds.percent + CLOSED) * best.problem.total_cost / 100
    best.progress(f"ruin and recreate, longer: {rounds} rounds, {best.elapsed:.1f} s")
    best.offer(search.annealed(best.budget, best.pairs, rounds, 2, best.stopped, good), "ruin and recreate, longer")


def _windows(best: Incumbent, effort: Effort, bounds: Bounds) -> None:
    """The best plan, chosen anew in each of its windows."""
    if _closed(best, bounds, FAR) or best.pairs is None or not effort.many or len(best.problem) > SMALL:
        return
    if not interval_program.available():
        best.progress("OR-tools is not installed: windows of stages are not chosen anew")
        return
    pairs = best.pairs
    for first, last in windows(best.problem, WIDTH):
        if best.stopped():
            return
        best.progress(f"stages {first} to {last} anew, {best.elapsed:.1f} s")
        pairs = interval_program.chosen_anew(best.problem, best.budget, pairs, first, last, WORK)
        best.offer(pairs, f"{best.solver} + windows".replace(" + windows + windows", " + windows"))
