"""What memory costs a step by the model of XLA:CPU: a curve over budgets, each kept by a plan that was written.

The plans are those that a budget by that model chooses from; what was written for one budget counts for all. Nothing is
proved of the least.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..analysis.memory.timeline import Labels, described
from ..analysis.step.order import functions_of
from ..options.recompute_options import DEFAULT, RecomputeOptions
from ..planning.calibrated_search import CalibratedSearch
from ..planning.plan_file import StepPlan
from ..planning.solvers.result import Progress, Stop
from ..reports.curve import Again, Curve, Point, Refused
from ..rules.flops import flops
from ..search.budget.limits import ERROR
from ..search.pool import Candidate, Pool, pool_of
from ..search.prepare import prepare
from ..search.recompute import recomputed
from ..support.diagnostics import Refusal
from ..transforms.phase import numbered_steps
from ..transforms.plans.counted import XLA, flat, timelines_of

NO_BOUND = "no bound proved in this model"
ROUNDS = 3
"""The maximum number of plans written for each budget, in addition to those written for other budgets."""
NAMED = 3
"""The number of values of a segment that are named, the most expensive first."""


@dataclass
class _Written:
    """Plans by their number in the pool: the share of the plain step's temporaries that they need, and FLOPs more."""

    module: ModuleOp
    pool: Pool
    stop: Stop
    plain: Mapping[str, int]
    needs: dict[int, float] = field(default_factory=dict[int, float])
    flops: dict[int, int] = field(default_factory=dict[int, int])

    def needed(self, at: int) -> float | None:
        candidate = self.pool.candidates[at]
        try:
            rewritten, outcome = recomputed(self.module, RecomputeOptions(plan=candidate.plans, loops=candidate.loops))
        except Refusal:
            return None
        peaks = {name: line.peak_bytes for name, line in timelines_of(rewritten or self.module, XLA)}
        self.flops[at] = outcome.extra_flops
        return max(peaks[name] / max(before, 1) for name, before in self.plain.items())

    def look(self, share: float) -> None:
        """Write what may keep the budget at less work than what is known."""
        search = partial(self.pool.search, stop=self.stop)
        CalibratedSearch(self.pool.predictions, share, (1.0, 1.0), self.needs).run(self.needed, ROUNDS, search)

    def best(self, share: float) -> int | None:
        """The least FLOPs of all that keep the budget, then the fewest bytes."""
        within = [at for at, need in self.needs.items() if need <= share]
        return min(within, key=lambda at: (self.flops[at], self.needs[at]), default=None)

    @property
    def least(self) -> float:
        return min((need for need in self.needs.values()), default=1.0)


def swept_by_model(module: ModuleOp, count: int, progress: Progress, stop: Stop) -> Curve:
    """Budgets 1/count, 2/count, … of the plain step's temporaries; once it is to `stop`, no further plan is written.

    The module stays as it is. Raises `Refusal` where there is no gradient, and for dynamic shapes."""
    plain = {name: line.peak_bytes for name, line in timelines_of(module, XLA)}
    written = _Written(module, pool_of(module, DEFAULT, stop), stop, plain)
    shares = [at / count for at in range(1, count)]
    for share in reversed(shares):
        progress(f"budget {share:.4f} of the temporaries, by the model of XLA:CPU")
        if not stop():
            written.look(share)
    most = max(plain.values(), default=0)
    points, refused = list[Point](), list[Refused]()
    for share in shares:
        point = _outcome(written, share, most, finished=not stop())
        (points if isinstance(point, Point) else refused).append(point)  # pyright: ignore[reportArgumentType]
    points.append(Point(most, most, 0.0, 0.0, "nothing runs again", "plain", True))
    name = f"{', '.join(f'@{point}' for point in plain)} by the model of XLA:CPU, {ERROR}"
    return Curve(name, most, 0, (), tuple(points), tuple(refused))


def _outcome(written: _Written, share: float, most: int, finished: bool) -> Point | Refused:
    budget = max(1, int(share * most))
    if (at := written.best(share)) is None:
        least = (
            f"of {len(written.flops)} that were written the least needs {written.least:.4f} of the plain temporaries"
        )
        return Refused(budget, least if finished else f"stopped: {least}", proved=False)
    total, candidate = _total(written.module), written.pool.candidates[at]
    again = tuple(_again(written.module, candidate, total))
    need, percent = int(written.needs[at] * most), 100 * written.flops[at] / total
    return Point(budget, need, percent, None, NO_BOUND, candidate.words, finished, again)


def _total(module: ModuleOp) -> int:
    blocks = (block for function in functions_of(flat(module)) for block in function.body.blocks)
    return max(1, sum(flops(op) for block in blocks for op in block.ops))


def _again(module: ModuleOp, candidate: Candidate, total: int) -> Iterator[Again]:
    """By segment, those that cost most first; of loops, what their bodies compute again is not told."""
    plans = {plan.function: plan for plan in candidate.plans}
    runs = dict[str, list[tuple[int, Operation]]]()
    for function, step in numbered_steps(prepare(module, RecomputeOptions(loops=candidate.loops)).module):
        labels = Labels.of(step.phases)
        for op in _copied(plans.get(function.sym_name.data)):
            operation = step.operation(op)
            runs.setdefault(labels.segment_of(operation), []).append((step.graph.flops[op], operation))
    for segment, ran in sorted(
        runs.items(), key=lambda candidate: (-sum(cost for cost, _ in candidate[1]), candidate[0])
    ):
        dearest = sorted(ran, key=lambda candidate: -candidate[0])
        named = tuple(dict.fromkeys(described(op) for _, op in dearest))[:NAMED]
        yield Again(segment, len(ran), 100 * sum(cost for cost, _ in ran) / total, named)


def _copied(plan: StepPlan | None) -> Iterable[int]:
    return [] if plan is None else [op for group in plan.plan.groups for op in group.operations]
