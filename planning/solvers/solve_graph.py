"""Plan a step within a memory budget: convert the graph of the step to a problem, solve it, and convert the copies that
the solver finds to a plan.

    RecomputeOptions(planner=planner_within("8GiB"))

The budget limits the peak of temporaries in program order, as computed by `liveness.peak_bytes`. Arguments, captured
values and results are not temporaries. A budget given as a share is relative to the peak of the plain step. Forward
operations may be rerun before operations of the backward pass. The peak of a plan is computed on the rewritten graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...support.units import parse_budget, readable_bytes
from ..graph import Graph
from ..liveness import CountedStorages, peak_bytes
from ..pairs import plan_of_pairs
from ..plan import Optimality, Plan
from ..simulate import as_graph, simulate
from .effort import SMALL_PROBLEM, Effort
from .incumbent import Incumbent
from .live_sets import TooManyStates, copies_within
from .lowest_peak import LowPeak, greedy_lowest_peak_plan, lowest_peak_plan
from .problem import OperationRow, Pair, Problem, problem_of
from .result import LIVE, Infeasible, NameOfOperation, NoPlan, Result, Stop, infeasible, minimum_clause, never_stop
from .solvers_by_name import solve
from .two_point_bound import TwoPointBound, two_point_bound
from .working_set import largest_working_set, live_values_clause

MAX_SOLVES = 5
"""Maximum number of times that the problem is solved. After each attempt, the limit is lowered by the excess of the
rewritten graph; beyond the limit, the budget is refused."""


def problem_of_graph(graph: Graph) -> Problem:
    """Return the problem of a graph, with the same operation indices.

    A read through a view becomes a read of the viewed storage; `pairs_with_views` later adds copies of the views that a
    copy needs. The cost of an execution is one more than in the graph, so that no copy is free. If an operation has a
    returned storage and other results, the returned storage counts as live during the whole step.
    """
    always_live = _returned_with_siblings(graph)
    owners = [owner for owner in map(int, CountedStorages.of(graph).owners) if owner not in always_live]
    number = {owner: index for index, owner in enumerate(owners)}
    makers = [graph.maker[owner] for owner in owners]
    assert makers == sorted(makers), "storages are in the order of their makers"
    always_live_bytes = sum(graph.sizes[owner] for owner in always_live)
    backward = [not is_forward for is_forward in graph.forward]
    first = next((op for op in range(len(graph)) if graph.gradient[op]), len(graph))
    rows = [
        OperationRow(
            name=graph.names[op],
            cost=graph.cost[op] + 1,
            operands=[number[root] for v in graph.reads[op] if (root := graph.root[v]) in number],
            result_bytes=[graph.sizes[v] for v in graph.makes[op] if v in number],
            inner_bytes=graph.inner_bytes[op] + always_live_bytes,
            may_run_again=_may_run_again(graph, op),
            is_backward=backward[op],
        )
        for op in range(len(graph))
    ]
    names = [f"{graph.names[maker]} ({maker})" for maker in makers]
    return problem_of(rows, (), names, earliest_stage=first)


def _may_run_again(graph: Graph, op: int) -> bool:
    """Return whether the operation may be copied. It must be a forward operation without effects, and its results must
    own their storage."""
    is_pure = graph.forward[op] and graph.effects[op] is None and op not in graph.copies and op not in graph.literals
    return is_pure and op not in graph.aliasing and not graph.returned_forward.issuperset(graph.makes[op])


def _returned_with_siblings(graph: Graph) -> frozenset[int]:
    """Return the returned storages of operations that also have other results. Such an operation may be recomputed for
    its other results."""
    returned = graph.returned_forward
    mixed = (results for results in graph.makes if len(results) > 1 and not returned.issuperset(results))
    return returned.intersection(value for results in mixed for value in results)


def pairs_with_views(graph: Graph, pairs: Iterable[Pair]) -> set[Pair]:
    """Return the pairs, with copies of the views of each copied result added. Otherwise readers through a view would
    read the original storage."""
    extended = set(pairs)
    for place, op in list(extended):
        stack = list(graph.makes[op])
        while stack:
            value = stack.pop()
            for reader in graph.readers[value]:
                if reader < place and reader in graph.casts and (place, reader) not in extended:
                    extended.add((place, reader))
                    stack += graph.makes[reader]
    return extended


@dataclass(frozen=True, eq=False)
class PreparedGraph:
    """A graph with the results that do not depend on the budget: its problem, its bounds, and its plan with the lowest
    peak. Each result is computed once."""

    graph: Graph
    _lowest: dict[object, LowPeak] = field(default_factory=dict[object, LowPeak])

    @cached_property
    def problem(self) -> Problem:
        """The problem of the graph."""
        return problem_of_graph(self.graph)

    @cached_property
    def peak_bytes(self) -> int:
        """The peak of the plain step."""
        return peak_bytes(self.graph)

    @cached_property
    def two_point_bound(self) -> TwoPointBound:
        """The lower bound on the peak that follows from two operations."""
        return two_point_bound(self.problem)

    def greedy_lowest_peak_plan(self, stop: Stop) -> LowPeak:
        """Return the plan with the lowest peak that the greedy search finds. The result is stored, unless the search
        was stopped."""
        return self._stored(greedy_lowest_peak_plan, stop)

    def lowest_peak_plan(self, stop: Stop) -> LowPeak:
        """Return the plan with the lowest peak that all methods find (`lowest_peak.py`). The result is stored, unless
        the search was stopped."""
        return self._stored(lowest_peak_plan, stop)

    def _stored(self, search: Callable[[Problem, Stop], LowPeak], stop: Stop) -> LowPeak:
        if search in self._lowest:
            return self._lowest[search]
        plan = search(self.problem, stop)
        if not stop():
            self._lowest[search] = plan
        return plan


@dataclass(frozen=True)
class SearchOptions:
    """Options of the search for a plan within a budget.

    Attributes:
        solver: The name of the solver, one of `SOLVER_NAMES`.
        stop: A predicate that ends the search with the best plan so far.
        repeats_on_small: Whether to repeat the search with more effort if a brief search finds no plan for a small
            problem. This takes one or two seconds with numba, and minutes without numba.
        searches_longer: Whether to search longer if the solver finds no plan. The longer search looks for the plan with
            the lowest peak and, for a small problem, searches all sets of live storages. This takes seconds.
        chain: As in `plan_of_pairs`, for eager executors.
    """

    solver: str = "auto"
    stop: Stop = never_stop
    repeats_on_small: bool = True
    searches_longer: bool = True
    chain: bool = False


DEFAULT_SEARCH = SearchOptions()


@dataclass(frozen=True)
class _GraphSearch:
    """The searches for a plan for one graph, in order of increasing effort."""

    prepared: PreparedGraph
    options: SearchOptions

    def solve_within(self, limit: int, starts: Iterable[Collection[Pair]] = ()) -> Result | Infeasible:
        """Return a result within `limit` bytes, or the reason why there is none. `starts`: the copies of plans to start
        from."""
        is_small = len(self.prepared.problem) <= SMALL_PROBLEM
        outcome = self._search(limit, Effort.brief(), starts)
        if self._is_open(outcome) and self.options.repeats_on_small and is_small:
            outcome = self._search(limit, Effort.retry())
        if self._is_open(outcome):
            prepared, stop = self.prepared, self.options.stop
            least = prepared.greedy_lowest_peak_plan(stop)
            if least.peak_bytes > limit and self.options.searches_longer:
                least = prepared.lowest_peak_plan(stop)
            if least.peak_bytes <= limit:
                outcome = self._search(limit, Effort.brief(), [least.pairs])
        if self._is_open(outcome) and self.options.searches_longer and is_small:
            outcome = self._search_live_sets(limit) or outcome
        return outcome

    def _search(self, limit: int, effort: Effort, starts: Iterable[Collection[Pair]] = ()) -> Result | Infeasible:
        problem = self.prepared.problem
        incumbent = Incumbent.until(problem, limit, self.options.stop)
        return solve(problem, limit, solver=self.options.solver, best=incumbent, starts=starts, effort=effort)

    def _search_live_sets(self, limit: int) -> Result | Infeasible | None:
        """Return the outcome of a search over all sets of live storages; None if there are too many sets."""
        problem = self.prepared.problem
        try:
            pairs = copies_within(problem, limit, self.options.stop)
        except TooManyStates:
            return None
        if pairs is None:
            reason = "no schedule is within the budget: all sets of live storages were searched"
            return infeasible(problem, reason, True)
        return self._search(limit, Effort.brief(), [pairs])

    def _is_open(self, outcome: Result | Infeasible) -> bool:
        """Return whether a further search may find a plan."""
        return isinstance(outcome, Infeasible) and not outcome.proved and not self.options.stop()


def plan_within(
    graph: Graph,
    budget: int,
    options: SearchOptions = DEFAULT_SEARCH,
    prepared: PreparedGraph | None = None,
) -> Plan:
    """Return a plan within the budget.

    Args:
        graph: The graph of the step.
        budget: The budget in bytes of temporaries in program order.
        options: The solver and the limits of the search.
        prepared: The prepared graph, if plans for several budgets are computed; ignored if it belongs to another graph.

    Returns:
        The plan with its distance to the optimum. It has no copies if the plain step is within the budget.

    Raises:
        NoPlan: If no plan within the budget exists, or none is found.
        ValueError: If the solver is unknown.
    """
    if prepared is None or prepared.graph is not graph:
        prepared = PreparedGraph(graph)
    if prepared.peak_bytes <= budget:
        return Plan(optimality=Optimality(0.0, 0.0, "costs are not negative"))
    problem, bound = prepared.problem, prepared.two_point_bound
    if bound.bytes > max(budget, largest_working_set(problem).bytes):
        raise _no_plan(prepared, budget, "", options.stop)
    search = _GraphSearch(prepared, options)
    fitting = solve_until_rewritten_fits(graph, problem, budget, search.solve_within, options.chain)
    if isinstance(fitting, FittingPlan):
        return fitting.plan
    raise _no_plan(prepared, budget, fitting.reason, options.stop)


def plan_with_lowest_peak(
    graph: Graph, options: SearchOptions = DEFAULT_SEARCH, prepared: PreparedGraph | None = None
) -> Plan:
    """Search for the lowest peak of any plan, and return the cheapest plan that the solver finds within this peak. The
    plan has no copies if no plan has a lower peak than the plain step.

    Args:
        graph: The graph of the step.
        options: The solver and the limits of the search.
        prepared: As in `plan_within`.
    """
    if prepared is None or prepared.graph is not graph:
        prepared = PreparedGraph(graph)
    problem, least = prepared.problem, prepared.lowest_peak_plan(options.stop)
    search = _GraphSearch(prepared, options)

    def solve_within(limit: int) -> Result | Infeasible:
        return search.solve_within(limit, [least.pairs])

    fitting = solve_until_rewritten_fits(graph, problem, least.peak_bytes, solve_within, options.chain)
    if isinstance(fitting, Infeasible):
        # The rewritten graph needs more than the copies alone, and no plan was found for a lower limit.
        plan = plan_of_pairs(graph, pairs_with_views(graph, least.pairs), chain=options.chain)
        rewritten_bytes = peak_bytes(as_graph(graph, simulate(graph, plan, keeps_barriers=False)))
        return plan if rewritten_bytes < prepared.peak_bytes else Plan()
    return fitting.plan


def _no_plan(prepared: PreparedGraph, budget: int, reason: str, stop: Stop) -> NoPlan:
    """Return the error for a budget in bytes that no plan meets.

    `reason`: the reason why no plan was found; "" if the reason is the lower bound on the peak.
    """

    def full_reason(name: NameOfOperation | None) -> str:
        problem, bound = prepared.problem, prepared.two_point_bound
        name = name or (lambda op: f"{problem.names[op]} ({problem.labels[op]})")
        working_set = largest_working_set(problem)
        if bound.bytes > working_set.bytes:
            minimum, where = minimum_clause(bound.bytes), bound.clause(problem, name)
        else:
            minimum, where = minimum_clause(working_set.bytes), live_values_clause(problem, working_set, name)
        least_bytes = prepared.lowest_peak_plan(stop).peak_bytes
        clauses = [f"{minimum}{LIVE}{where}"]
        if least_bytes > budget:
            clauses.append(f"the best plan found needs {readable_bytes(least_bytes)}")
        return "; ".join(clauses if reason in ("", minimum) else [reason, *clauses])

    return NoPlan(f"of {readable_bytes(budget)} of temporaries", full_reason)


@dataclass(frozen=True)
class FittingPlan:
    """A plan whose rewritten graph is within the budget.

    Attributes:
        plan: The plan.
        result: The result of the solver, with the peak of the rewritten graph and a bound that is valid for the
            requested budget.
    """

    plan: Plan
    result: Result


def solve_until_rewritten_fits(
    graph: Graph,
    problem: Problem,
    budget: int,
    solve_within: Callable[[int], Result | Infeasible],
    chain: bool = False,
) -> FittingPlan | Infeasible:
    """Solve, rewrite the graph, and re-solve for a lower limit while the rewritten graph exceeds the budget.

    Args:
        graph: The graph of the step.
        problem: The problem of the graph.
        budget: The budget in bytes of temporaries in program order.
        solve_within: The solver: a function from a limit in bytes to a result.
        chain: As in `plan_of_pairs`.

    Returns:
        The plan, or the reason why no plan was found. The problem is solved at most `MAX_SOLVES` times.
    """
    limit, rewritten_bytes, first = budget, 0, None
    for _ in range(MAX_SOLVES):
        outcome = solve_within(limit) if limit > 0 else None
        if outcome is None or isinstance(outcome, Infeasible):
            proved = outcome is not None and outcome.proved and limit == budget
            refused = infeasible(problem, _reason_for(problem, outcome, rewritten_bytes), proved)
            return replace(refused, finished=outcome is None or outcome.finished)
        first = first or outcome
        plan = plan_of_pairs(graph, pairs_with_views(graph, outcome.pairs), chain=chain)
        rewritten_bytes = peak_bytes(as_graph(graph, simulate(graph, plan, keeps_barriers=False)))
        if rewritten_bytes <= budget:
            return _fitting_plan(plan, outcome, first, budget, rewritten_bytes)
        limit = min(limit, outcome.peak_bytes) - (rewritten_bytes - budget)
    return infeasible(problem, _after_rewriting(rewritten_bytes), proved=False)


def _fitting_plan(plan: Plan, result: Result, first: Result, budget: int, rewritten_bytes: int) -> FittingPlan:
    """Return the plan with a result that is valid for the requested budget. `first`: the result for this budget, whose
    bound is used. The bounds of later results hold only for lower limits."""
    bound = min(first.bound_percent, result.percent)
    result = replace(result, budget=budget, peak_bytes=rewritten_bytes, bound_percent=bound, bound_by=first.bound_by)
    return FittingPlan(replace(plan, optimality=result.optimality), result)


def _reason_for(problem: Problem, refusal: Infeasible | None, rewritten_bytes: int) -> str:
    """Return the reason that no plan is within the budget, for messages.

    Args:
        problem: The problem.
        refusal: The refusal of the solver; None if the limit fell to 0.
        rewritten_bytes: The peak of the last rewritten graph, which exceeded the budget; 0 if no graph was rewritten.
    """
    if rewritten_bytes:
        return _after_rewriting(rewritten_bytes)
    return minimum_clause(largest_working_set(problem).bytes) if refusal is None else refusal.reason


def _after_rewriting(rewritten_bytes: int) -> str:
    return f"after rewriting, the last plan needs {readable_bytes(rewritten_bytes)}"


def planner_within(budget: str, less: int = 0) -> Callable[[Graph], Plan]:
    """Return a planner for a budget. The planner raises `NoPlan` if it finds no plan.

    Args:
        budget: The budget of temporaries in program order: `8GiB`, `50%`, `0.5` or `min`.
        less: The number of bytes to subtract from the budget.

    Raises:
        ValueError: If the budget is invalid.
    """
    parse_budget(budget, 1)
    return lambda graph: plan_within(graph, bytes_within(graph, budget) - less)


def bytes_within(graph: Graph, budget: str) -> int:
    """Convert a budget to bytes of temporaries of this step. `budget`: as in `planner_within`."""
    limit = parse_budget(budget, peak_bytes(graph))
    return lowest_peak_plan(problem_of_graph(graph)).peak_bytes if limit is None else limit
