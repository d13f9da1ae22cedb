"""Keep a budget under Inductor: plan in program order, compile, measure, correct the bound, plan again.

The peak of a compiled step differs from the peak in program order, since Inductor fuses and reorders. A plan is made
for a bound in program order; the measured peak of the compiled step, divided by the planned one, corrects the bound of
the next plan. If none of these plans keeps the budget, partitions of PyTorch's own partitioner are tried if they are
correct: below a budget of 1 it draws random numbers again and reads overwritten buffers.

Budgets on one step share measurements: a step that was compiled for one budget is a candidate for the others
(`measurements.py`). A budget that a known candidate keeps that was chosen for a larger one is not searched again, so
that peaks never rise when budgets fall.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
import torch._functorch.config as functorch_config
from functorch.compile import min_cut_rematerialization_partition

from ...driver.verified import NotProved
from ...support.diagnostics import Refusal
from ...support.units import MINIMUM, is_share, parse_budget, readable_bytes
from .compiled_step import devices_of, measured_peak, program_order_peak
from .flops import flops_of
from .measurements import Measurement, Measurements
from .options import Options
from .partition import BudgetNotKept
from .report import GraphReport, Round, report_of, unchanged_report
from .schemas import draws
from .step import JointStep, Partitioned, RewrittenStep

COMPILES = 4
"""The maximum number of steps that are compiled for a budget; the plain step is not counted."""
OF_OURS = 3
"""The number of these steps that are reserved for plans of this package if PyTorch's may be tried, too."""
CLOSE = 0.95
"""A measured peak of at least this share of the limit is close enough: no looser plan is tried."""
MARGIN = 0.99
"""The factor on an extrapolated bound, since the ratio differs between plans."""
TORCH_BUDGETS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
"""Values of `activation_memory_budget` that are considered; the partition with a fitting prediction is compiled."""


@dataclass(frozen=True)
class Candidate:
    """A way to split the step.

    Attributes:
        words: A description.
        halves: The forward and the backward half.
        planned_bytes: The peak in program order.
        flops: FLOPs of products.
        rewritten: The rewrite, if the plan is one of `recompute`.
        torch_budget: The value of `activation_memory_budget`, if it is PyTorch's.
    """

    words: str
    halves: Partitioned
    planned_bytes: int
    flops: int
    rewritten: RewrittenStep | None = None
    torch_budget: float | None = None

    def measured(self, peak_bytes: int) -> Measurement:
        """Return the measurement of its peak as compiled."""
        source = self.torch_budget if self.rewritten is None else self.rewritten.stored
        return Measurement(self.words, self.planned_bytes, peak_bytes, self.flops, source)


def partitioned_within(step: JointStep, options: Options) -> tuple[Partitioned, GraphReport]:
    """Return the halves of the step with the least extra work whose compiled peak is within the budget.

    Raises `BudgetNotKept` if no compiled step is within the budget, and `NotMeasured` if the plain step cannot be
    measured.
    """
    return _Search(step, options).best()


@dataclass(frozen=True)
class _Search:
    """The search of one step. `_made`: the candidates that it has measured, by description and planned bytes."""

    step: JointStep
    options: Options
    _made: dict[tuple[str, int], Candidate] = field(default_factory=dict[tuple[str, int], Candidate])

    def best(self) -> tuple[Partitioned, GraphReport]:
        plain_bytes = self._plain_bytes
        limit = self._limit(plain_bytes)
        rounds = list[Round]()
        known = None if limit is None else self._known_within(limit)
        if limit is None or known is None or not self._is_good(*known, limit):
            for candidate in self._candidates(limit, plain_bytes, rounds):
                peak = self._measured(candidate)
                fits = None if limit is None else peak <= limit
                rounds.append(Round(candidate.words, candidate.planned_bytes, peak, candidate.flops, fits))
            known = self._known_within(self._least_bytes if limit is None else limit)
        if known is None:
            raise BudgetNotKept(
                _not_reached(self.options.budget or "", limit or 0, plain_bytes, self._least_bytes, rounds)
            )
        candidate, peak = known
        if limit is not None:
            self._measurements.choices.append((limit, peak))
        return candidate.halves, self._report(candidate, plain_bytes, peak, rounds)

    def _is_good(self, candidate: Candidate, peak: int, limit: int) -> bool:
        """Return whether no search is needed: the candidate needs no extra work or nearly the whole limit, or is one
        that keeps the choice for a larger budget from having a lower peak."""
        is_cheap = candidate.flops <= self._plain.flops or peak >= CLOSE * limit
        return is_cheap or self._measurements.is_settled(limit)

    def _known_within(self, limit: int) -> tuple[Candidate, int] | None:
        """Return the measured candidate within the limit with the fewest FLOPs, and its peak; None without one."""
        for measurement in self._measurements.within(limit):
            candidate = self._again(measurement)
            if candidate is not None:
                return candidate, measurement.peak_bytes
        return None

    def _again(self, measurement: Measurement) -> Candidate | None:
        """Make a measured candidate; None if its plan does not fit, which would be a defect."""
        made = self._made.get((measurement.words, measurement.planned_bytes))
        if made is not None:
            return made
        if measurement.source is None:
            return self._plain
        if isinstance(measurement.source, float):
            return self._by_torch(measurement.source)
        rewritten = RewrittenStep.of_stored(self.step, self.options.rewrite, measurement.source)
        return None if rewritten is None else self._candidate_of(rewritten, measurement.words)

    def _limit(self, plain_bytes: int) -> int | None:
        """Return the bytes for the step in addition to weights, buffers and inputs; None for the budget `min`."""
        budget = self.options.budget or MINIMUM
        if budget == MINIMUM:
            return None
        limit = parse_budget(budget, plain_bytes) or 0
        return limit if is_share(budget) else limit - self._unchanged.input_bytes

    def _candidates(self, limit: int | None, plain_bytes: int, rounds: list[Round]) -> Iterator[Candidate]:
        """Yield candidates to compile, each chosen by the measurements in `rounds`."""
        most = OF_OURS if self._torch_is_right else COMPILES
        ours = self._least() if limit is None else self._ours(limit, plain_bytes, rounds, most)
        yield from ours
        left = COMPILES - len(rounds)
        if self._torch_is_right and left and not any(each.fits for each in rounds):
            yield from self._torch(limit, plain_bytes, left, rounds)

    def _ours(self, limit: int, plain_bytes: int, rounds: list[Round], most: int) -> Iterator[Candidate]:
        """Yield plans for bounds in program order, each the loosest that should fit by the measurements so far."""
        known = self._measurements.of_ours
        bound = next_bound(limit, known) if known else int(limit * self._unchanged.plain_bytes / plain_bytes)
        bounds = {planned for planned, peak in known if peak > limit}
        for _ in range(most):
            candidate = self._within(bound) or self._smallest()
            if candidate is not None and candidate.planned_bytes in bounds and not any(each.fits for each in rounds):
                candidate = self._by_segments()
            if candidate is None or candidate.planned_bytes in bounds:
                return
            bounds.add(candidate.planned_bytes)
            yield candidate
            last = rounds[-1]
            if last.fits and (last.peak_bytes >= CLOSE * limit or candidate.flops <= self._plain.flops):
                return
            bound = next_bound(limit, self._measurements.of_ours)

    def _least(self) -> Iterator[Candidate]:
        """Yield plans for the budget `min`: the smallest in program order, and two that leave Inductor more room."""
        smallest = self._smallest()
        if smallest is None:
            return
        looser = [self._within(int(share * smallest.planned_bytes)) for share in (1.1, 1.25)]
        larger = [each for each in looser if each is not None and each.planned_bytes > smallest.planned_bytes]
        for candidate in (smallest, *larger):
            if not self._measurements.has(candidate.words, candidate.planned_bytes):
                yield candidate

    def _torch(self, limit: int | None, plain_bytes: int, count: int, rounds: list[Round]) -> Iterator[Candidate]:
        """Yield the partitions of PyTorch's partitioner: the loosest that is predicted to fit, then smaller ones."""
        ratio = plain_bytes / self._plain.planned_bytes
        candidates = [each for each in self._of_torch() if not self._measurements.has(each.words, each.planned_bytes)]
        while candidates and count:
            within = [each for each in candidates if limit is not None and ratio * each.planned_bytes <= limit]
            chosen = (
                min(within, key=lambda each: each.flops)
                if within
                else min(candidates, key=lambda each: each.planned_bytes)
            )
            candidates = [each for each in candidates if each.planned_bytes != chosen.planned_bytes]
            yield chosen
            count -= 1
            if rounds[-1].fits:
                return
            ratio = max(ratio, rounds[-1].peak_bytes / chosen.planned_bytes)

    def _within(self, bound: int) -> Candidate | None:
        """Make the plan for a bound in program order; None if there is none."""
        budget = f"{bound + self._unchanged.input_bytes}B"
        return self._of_ours(budget, f"plan within {bound} bytes in program order")

    def _smallest(self) -> Candidate | None:
        try:
            return self._candidate_of(self.step.smallest(self.options.rewrite), "smallest plan in program order")
        except Refusal:
            return None

    def _by_segments(self) -> Candidate | None:
        """Make the plan that recomputes whole segments: Inductor fuses their copies, so that it may need less than the
        smallest plan in program order."""
        return self._of_ours(None, "plan by segments")

    def _of_ours(self, budget: str | None, words: str) -> Candidate | None:
        options = Options(replace(self.options.rewrite, budget=budget), budget)
        try:
            return self._candidate_of(self.step.rewritten(options), words)
        except Refusal:
            return None

    def _candidate_of(self, rewritten: RewrittenStep, words: str) -> Candidate | None:
        try:
            halves = self.step.split(rewritten)
        except NotProved:
            return None
        report = report_of(self.step, rewritten)
        return Candidate(words, halves, report.peak_bytes, report.flops, rewritten)

    def _of_torch(self) -> Iterator[Candidate]:
        yield from map(self._by_torch, TORCH_BUDGETS)

    def _by_torch(self, budget: float) -> Candidate:
        with functorch_config.patch(activation_memory_budget=budget):
            return replace(self._by_min_cut(f"activation_memory_budget={budget:g}"), torch_budget=budget)

    @cached_property
    def _plain(self) -> Candidate:
        """The partition that Inductor makes without this project."""
        return self._by_min_cut("PyTorch's partitioner")

    def _by_min_cut(self, words: str) -> Candidate:
        # The partitioner changes the graph that it is given.
        step = self.step
        halves = min_cut_rematerialization_partition(
            _copied(step.joint), step.inputs, num_fwd_outputs=step.num_fwd_outputs, **step.keywords
        )
        return Candidate(words, halves, program_order_peak(halves, step.num_fwd_outputs), _flops(halves))

    @cached_property
    def _unchanged(self) -> GraphReport:
        """Return the report on the unchanged step: its peak in program order, and the bytes of its arguments."""
        return unchanged_report(self.step)

    @cached_property
    def _torch_is_right(self) -> bool:
        """Whether PyTorch's partitioner computes the same when it recomputes: nothing is random or overwritten."""
        joint = self.step.joint
        is_random = any(
            isinstance(node.target, torch._ops.OpOverload) and draws(node.target) for node in joint.graph.nodes
        )
        return not is_random and not self.step.overwrites

    @cached_property
    def _measurements(self) -> Measurements:
        return Measurements.of(self.step, self.options)

    @property
    def _plain_bytes(self) -> int:
        known = self._measurements.plain_bytes
        return self._measured(self._plain) if known is None else known

    @property
    def _least_bytes(self) -> int:
        return self._measurements.least_bytes or 0

    def _compiled_peak(self, candidate: Candidate) -> int:
        (device,) = devices_of(self.step.joint)
        return measured_peak(candidate.halves, self.step.num_fwd_outputs, device)

    def _measured(self, candidate: Candidate) -> int:
        peak = self._compiled_peak(candidate)
        self._measurements.add(candidate.measured(peak))
        self._made[candidate.words, candidate.planned_bytes] = candidate
        return peak

    def _report(self, chosen: Candidate, plain_bytes: int, peak_bytes: int, rounds: list[Round]) -> GraphReport:
        report = self._unchanged if chosen.rewritten is None else report_of(self.step, chosen.rewritten)
        return replace(
            report,
            plain_bytes=plain_bytes,
            peak_bytes=peak_bytes,
            plain_flops=self._plain.flops,
            flops=chosen.flops,
            plan=chosen.words,
            rounds=tuple(rounds),
        )


def next_bound(limit: int, pairs: list[tuple[int, int]]) -> int:
    """Return the bound in program order of the next plan. `pairs`: planned and measured peaks of the steps before."""
    planned, measured = pairs[-1]
    over = [pair for pair in pairs if pair[1] > limit]
    within = [pair for pair in pairs if pair[1] <= limit]
    if over and within:
        low, high = max(within), min(over)
        share = (limit - low[1]) / max(1, high[1] - low[1])
        return int(low[0] + MARGIN * share * (high[0] - low[0]))
    return int(planned * limit / measured * (MARGIN if over else 1.0))


def _copied(joint: torch.fx.GraphModule) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    output = graph.graph_copy(joint.graph, {}, return_output_node=True)
    assert isinstance(output, tuple)
    value, original = output
    graph.output(value).meta = dict(original.meta)
    return torch.fx.GraphModule(joint, graph)


def _flops(halves: Partitioned) -> int:
    nodes = (node for half in halves for node in half.graph.nodes if isinstance(node.target, torch._ops.OpOverload))
    return sum(flops_of(node.target, node.args, node.kwargs, node.meta["val"]) or 0 for node in nodes)


def _not_reached(budget: str, limit: int, plain_bytes: int, least_bytes: int, rounds: list[Round]) -> str:
    """Return the message of the refusal: the smallest peak of all steps that were compiled for any budget, then each
    step that was compiled for this one."""
    limits = f"{readable_bytes(limit)} of {readable_bytes(plain_bytes)}"
    words = f"no compiled step keeps the budget {budget}, {limits} beside weights and inputs"
    of_rounds = min((each.peak_bytes for each in rounds), default=plain_bytes)
    least = "no other step is left to compile"
    if rounds:
        least = f"the least of {len(rounds)} compiled needs {readable_bytes(of_rounds)}"
    if least_bytes < of_rounds:
        least += f"; one compiled for another budget needs {readable_bytes(least_bytes)}"
    return "; ".join([f"{words}: {least}", *map(str, rounds)])
