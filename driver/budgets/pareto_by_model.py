"""Curves of memory and cost under the XLA:CPU model: each point is a plan that was applied and evaluated.

The plans are the candidates that a budget search under that model would evaluate. A rewrite for one budget is reused
for all further budgets. No lower bound is proved. Loops are cut first, as in a budget search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...analysis.memory.timeline import Labels
from ...analysis.step.descriptions import describe_operation
from ...analysis.step.module_steps import numbered_steps
from ...options.memory_model import XLA
from ...options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from ...planning.calibrated_search import CalibratedSearch
from ...planning.plan_file import StepPlan
from ...planning.solvers.result import Progress, Stop
from ...reports.curve import Curve, Point, RefusedBudget, SegmentRecomputation
from ...rewriting.rewrite import run_with_alternatives
from ...search.candidate_plans.pool import ModuleCandidate, Pool
from ...search.candidate_plans.pool_cache import pool_of
from ...search.limits import MODEL_ERROR
from ...search.prepare import prepare
from ...support.counted import counted
from ...support.diagnostics import Refusal
from ...transforms.preparation.timelines import timelines_of
from ..inspection.queries import step_flops
from .pareto_in_order import MAX_NAMED_VALUES

NO_BOUND = "no bound is proved by this model"
MAX_REWRITES_PER_BUDGET = 3
"""The maximum number of plans that are applied for each budget, in addition to the plans applied for other budgets. A
curve has many budgets, so each gets fewer rewrites than a single search (`MAX_REWRITES` in
`search/budget/within.py`)."""


@dataclass
class _MeasuredRewrites:
    """The rewrites that have been applied and evaluated, by the index of their candidate in the pool.

    Attributes:
        module: The plain step.
        pool: The candidates.
        stop: A predicate that ends the search.
        plain: The temporaries of each function of the plain step, in bytes.
        shares: The temporaries of each rewrite, as a share of the temporaries of the plain step.
        flops: The extra FLOPs of each rewrite.
    """

    module: ModuleOp
    pool: Pool
    stop: Stop
    plain: Mapping[str, int]
    shares: dict[int, float] = field(default_factory=dict[int, float])
    flops: dict[int, int] = field(default_factory=dict[int, int])

    def _measure(self, number: int) -> float | None:
        """Apply a candidate. Return its temporaries as a multiple of the plain step's temporaries; None if it cannot be
        applied."""
        candidate = self.pool.candidates[number]
        try:
            result = run_with_alternatives(self.module, RecomputeOptions(plan=candidate.plans, loops=candidate.loops))
        except Refusal:
            return None
        peaks = {name: line.peak_bytes for name, line in timelines_of(result.module or self.module, XLA)}
        self.flops[number] = result.outcome.extra_flops
        return max(peaks[name] / max(before, 1) for name, before in self.plain.items())

    def search(self, share: float) -> None:
        """Evaluate candidates that may meet a budget with fewer FLOPs than the known rewrites.

        `share`: the budget as a share of the temporaries.
        """
        search = partial(self.pool.search, stop=self.stop)
        CalibratedSearch(self.pool.predictions, share, (1.0, 1.0), self.shares).run(
            self._measure, MAX_REWRITES_PER_BUDGET, search
        )

    def best(self, share: float) -> int | None:
        """Return the index of the rewrite within the budget that has the fewest extra FLOPs; None if there is none.

        Of rewrites with equally many FLOPs, the one with the fewest bytes is returned."""
        within = [number for number, needed in self.shares.items() if needed <= share]
        return min(within, key=lambda number: (self.flops[number], self.shares[number]), default=None)

    @property
    def smallest_share(self) -> float:
        return min(self.shares.values(), default=1.0)


class ModelSweepObserver(Protocol):
    """Receives each result of a sweep as soon as it is available."""

    def begin(self, name: str, plain_peak_bytes: int) -> None:
        """Receive the name of the curve and the temporaries of the plain step."""

    def report(self, outcome: Point | RefusedBudget) -> None:
        """Receive the outcome of a budget, without the recomputed operations.

        Budgets are in descending order. The rewrites for smaller budgets may still improve this outcome."""


def swept_by_model(
    module: ModuleOp, count: int, progress: Progress, stop: Stop, observer: ModelSweepObserver | None = None
) -> Curve:
    """Return the curve over the budgets 1/count, 2/count, … of the plain step's temporaries, under the XLA:CPU model.

    Args:
        module: The step, which is left unchanged.
        count: The number of budgets.
        progress: The callback for progress messages.
        stop: A predicate that ends the search with the results so far.
        observer: The receiver of the outcome of each budget.

    Raises:
        Refusal: For a module without a gradient, and for dynamic shapes.
    """
    plain = {name: line.peak_bytes for name, line in timelines_of(module, XLA)}
    plain_bytes = max(plain.values(), default=0)
    plain_point = _plain_point(plain_bytes)
    name = f"{', '.join(f'@{function}' for function in plain)} by the XLA:CPU model, which gives {MODEL_ERROR}"
    if observer is not None:
        observer.begin(name, plain_bytes)
        observer.report(plain_point)
    progress("looking for candidates, by the XLA:CPU model")
    rewrites = _MeasuredRewrites(module, pool_of(module, DEFAULT_OPTIONS, stop), stop, plain)
    shares, is_finished = [at / count for at in range(1, count)], dict[float, bool]()
    for share in reversed(shares):
        progress(f"budget {share:.4f} of the temporaries, by the XLA:CPU model")
        if not stop():
            rewrites.search(share)
        is_finished[share] = not stop()
        if observer is not None:
            observer.report(_outcome(rewrites, share, plain_bytes, is_finished[share]))
    outcomes = [_outcome(rewrites, share, plain_bytes, is_finished[share]) for share in shares]
    points = [
        _with_segments(rewrites, share, outcome)
        for share, outcome in zip(shares, outcomes, strict=True)
        if isinstance(outcome, Point)
    ]
    refused = [outcome for outcome in outcomes if isinstance(outcome, RefusedBudget)]
    return Curve(
        name=name,
        plain_peak_bytes=plain_bytes,
        minimum_bytes=0,
        holding=(),
        points=(*points, plain_point),
        refused=tuple(refused),
    )


def _plain_point(plain_bytes: int) -> Point:
    """Return the point of the plain step, which recomputes nothing."""
    return Point(
        budget_bytes=plain_bytes,
        peak_bytes=plain_bytes,
        percent=0.0,
        bound_percent=0.0,
        bound_by="nothing is recomputed",
        found_by="plain",
        finished=True,
    )


def _outcome(rewrites: _MeasuredRewrites, share: float, plain_bytes: int, finished: bool) -> Point | RefusedBudget:
    """Return the outcome for a budget, without the recomputed operations."""
    budget = max(1, int(share * plain_bytes))
    if (number := rewrites.best(share)) is None:
        candidates = counted(len(rewrites.shares), "candidate")
        best = f"best of {candidates}: {rewrites.smallest_share:.4f} of the plain temporaries"
        reason = f"{best} (no lower bound is known)"
        return RefusedBudget(budget, reason if finished else f"stopped: {reason}", proved=False)
    total = max(1, step_flops(rewrites.module))
    candidate = rewrites.pool.candidates[number]
    peak_bytes = int(rewrites.shares[number] * plain_bytes)
    percent = 100 * rewrites.flops[number] / total
    return Point(
        budget_bytes=budget,
        peak_bytes=peak_bytes,
        percent=percent,
        bound_percent=None,
        bound_by=NO_BOUND,
        found_by=candidate.words,
        finished=finished,
    )


def _with_segments(rewrites: _MeasuredRewrites, share: float, point: Point) -> Point:
    """Return the point with the recomputed operations of each segment."""
    number, total = rewrites.best(share), max(1, step_flops(rewrites.module))
    assert number is not None, "a point has a rewrite"
    candidate = rewrites.pool.candidates[number]
    return replace(point, recomputed_segments=tuple(_recomputed_by_segment(rewrites.module, candidate, total)))


def _recomputed_by_segment(module: ModuleOp, candidate: ModuleCandidate, total: int) -> Iterator[SegmentRecomputation]:
    """Yield the recomputed operations by segment, the most expensive segment first.

    Operations that loop bodies recompute are left out.
    """
    plans = {plan.function: plan for plan in candidate.plans}
    runs = dict[str, list[tuple[int, Operation]]]()
    for function, step in numbered_steps(prepare(module, RecomputeOptions(loops=candidate.loops)).module):
        labels = Labels.of(step.phases)
        for op in _copied_operations(plans.get(function.sym_name.data)):
            operation = step.operation(op)
            runs.setdefault(labels.segment_of(operation), []).append((step.graph.flops[op], operation))
    for segment, operations in sorted(runs.items(), key=lambda run: (-sum(cost for cost, _ in run[1]), run[0])):
        by_cost = sorted(operations, key=lambda cost_and_operation: -cost_and_operation[0])
        values = tuple(dict.fromkeys(describe_operation(op) for _, op in by_cost))[:MAX_NAMED_VALUES]
        yield SegmentRecomputation(segment, len(operations), 100 * sum(cost for cost, _ in operations) / total, values)


def _copied_operations(plan: StepPlan | None) -> Iterable[int]:
    return [] if plan is None else [op for group in plan.plan.groups for op in group.operations]
