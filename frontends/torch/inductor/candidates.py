"""Candidates for splitting a step into its forward and its backward half under Inductor.

A candidate is a plan of this package, or a partition by PyTorch.

A `Candidate` is plain data. Later compilations in the same process may reuse it. `Splitter` creates the candidates of
one step, and splits the step according to a candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import torch
import torch._functorch.config as functorch_config
from functorch.compile import min_cut_rematerialization_partition

from ....driver.verification.verified import NotProved
from ....planning.calibrated_search import Prediction
from ....support.diagnostics import Refusal
from ..fx.halves import Halves
from ..fx.product_flops import flops_of
from ..fx.schemas import draws
from ..partition.budget_rewrites import rewrite, smallest_rewrite
from ..partition.graph_reports import report_of, report_unchanged
from ..partition.joint_graph_step import JointStep
from ..partition.options import Options
from ..partition.plan_cache import StoredPlan
from ..partition.rewritten_step import RewrittenStep
from ..program_order.graph_peaks import program_order_peak
from ..reports.compile_report import GraphReport

TORCH_BUDGETS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
"""The values of `activation_memory_budget` for which PyTorch's partitions are candidates."""
PLAN, SEGMENTS, TORCH = "plan", "segments", "PyTorch"
"""The kinds of candidates. For candidates of one kind, the ratio of the compiled peak to the peak in program order is
similar."""


@dataclass(frozen=True)
class PlainPartition:
    """The partition that Inductor makes without this package."""


@dataclass(frozen=True)
class TorchPartition:
    """The partition of PyTorch's partitioner with `budget` as `activation_memory_budget`."""

    budget: float


SplitSource: TypeAlias = StoredPlan | PlainPartition | TorchPartition
"""The origin of a candidate: a plan of this package, or a partition by PyTorch."""


@dataclass(frozen=True)
class Candidate:
    """A way to split a step.

    Attributes:
        words: A description for reports.
        kind: `PLAN`, `SEGMENTS` or `TORCH`.
        planned_bytes: The peak in program order, in bytes.
        flops: The FLOPs of matrix products, convolutions and attention.
        source: The plan or the partition that splits the step.
    """

    words: str
    kind: str
    planned_bytes: int
    flops: int
    source: SplitSource

    @property
    def is_plain(self) -> bool:
        """Whether this is Inductor's own partition."""
        return isinstance(self.source, PlainPartition)


@dataclass(frozen=True)
class Splitter:
    """Creates the candidates of one step, and splits the step according to a candidate."""

    step: JointStep
    options: Options
    _rewrites: dict[Candidate, RewrittenStep] = field(default_factory=dict[Candidate, RewrittenStep])
    _halves: dict[Candidate, Halves] = field(default_factory=dict[Candidate, Halves])

    @cached_property
    def plain(self) -> Candidate:
        """The partition that Inductor makes without this package."""
        return self._by_min_cut("PyTorch's partitioner", PlainPartition())

    @cached_property
    def unchanged_report(self) -> GraphReport:
        """The report on the unchanged step, with its peak in program order and the bytes of its arguments."""
        return report_unchanged(self.step)

    def within(self, bound: int) -> Candidate | None:
        """Search for a plan within a bound in program order. Return None if none is found."""
        budget = f"{bound + self.unchanged_report.input_bytes}B"
        return self._by_plan(budget, f"plan within {bound} bytes in program order", PLAN)

    def smallest(self) -> Candidate | None:
        """Search for the plan with the lowest peak in program order. Return None if every plan is refused."""
        try:
            return self._candidate_of(
                smallest_rewrite(self.step, self.options.rewrite), "smallest plan in program order", PLAN
            )
        except Refusal:
            return None

    def by_segments(self) -> Candidate | None:
        """Create the plan that recomputes whole segments.

        Inductor fuses the copies of segments, so the compiled step may need less memory than the smallest plan in
        program order.
        """
        return self._by_plan(None, "plan by segments", SEGMENTS)

    def by_torch(self) -> Iterator[Candidate]:
        """Yield the partitions of PyTorch's partitioner at `TORCH_BUDGETS`.

        Yield none for a step with random operations or overwritten arguments, because recomputation by PyTorch's
        partitioner could change the results of such a step.
        """
        if self._is_random or self.step.overwrites:
            return
        for budget in TORCH_BUDGETS:
            yield self._by_min_cut(f"activation_memory_budget={budget:g}", TorchPartition(budget))

    def prediction(self, candidate: Candidate) -> Prediction:
        """Return the forecast of a candidate, from its peak in program order and its extra FLOPs."""
        extra_flops = max(0, candidate.flops - self.plain.flops)
        return Prediction(candidate.planned_bytes, extra_flops, candidate.kind)

    def split(self, candidate: Candidate) -> Halves | None:
        """Split the step according to a candidate. The candidate may be from an earlier compilation. Return None if its
        plan is not proved."""
        if candidate not in self._halves and not isinstance(candidate.source, StoredPlan):
            self._by_min_cut(candidate.words, candidate.source)
        if candidate not in self._halves and (rewritten := self._rewritten(candidate)) is not None:
            try:
                self._halves[candidate] = self.step.split(rewritten)
            except NotProved:
                return None
        return self._halves.get(candidate)

    def report(self, candidate: Candidate) -> GraphReport:
        """Return the report on the step that a candidate splits, with peaks in program order."""
        rewritten = self._rewritten(candidate)
        report = self.unchanged_report if rewritten is None else report_of(self.step, rewritten)
        return replace(report, plan=candidate.words, plain_flops=self.plain.flops, flops=candidate.flops)

    def _rewritten(self, candidate: Candidate) -> RewrittenStep | None:
        if candidate not in self._rewrites and isinstance(candidate.source, StoredPlan):
            rewritten = RewrittenStep.of_stored(self.step.module, self.options.rewrite, candidate.source)
            if rewritten is not None:
                self._rewrites[candidate] = rewritten
        return self._rewrites.get(candidate)

    @cached_property
    def _is_random(self) -> bool:
        targets = [node.target for node in self.step.joint.graph.nodes]
        return any(isinstance(target, torch._ops.OpOverload) and draws(target) for target in targets)

    def _by_plan(self, budget: str | None, words: str, kind: str) -> Candidate | None:
        options = Options(replace(self.options.rewrite, budget=budget))
        try:
            return self._candidate_of(rewrite(self.step, options), words, kind)
        except Refusal:
            return None

    def _candidate_of(self, rewritten: RewrittenStep, words: str, kind: str) -> Candidate:
        report = report_of(self.step, rewritten)
        candidate = Candidate(words, kind, report.peak_bytes, report.flops, rewritten.stored_plan)
        self._rewrites[candidate] = rewritten
        return candidate

    def _by_min_cut(self, words: str, source: PlainPartition | TorchPartition) -> Candidate:
        """Split the step with PyTorch's partitioner, within the budget of `source` if it has one."""
        step = self.step
        budget = {"activation_memory_budget": source.budget} if isinstance(source, TorchPartition) else {}
        with functorch_config.patch(budget):
            # The partitioner changes its argument, so it gets a copy.
            halves = min_cut_rematerialization_partition(
                _copy_of(step.joint), step.inputs, num_fwd_outputs=step.num_fwd_outputs, **step.keywords
            )
        planned_bytes = program_order_peak(halves, step.num_fwd_outputs)
        candidate = Candidate(words, TORCH, planned_bytes, _flops(halves), source)
        self._halves[candidate] = halves
        return candidate


def _copy_of(joint: torch.fx.GraphModule) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    copied: Any = graph.graph_copy(joint.graph, {}, return_output_node=True)
    value, original = copied
    graph.output(value).meta = dict(original.meta)
    return torch.fx.GraphModule(joint, graph)


def _flops(halves: Halves) -> int:
    nodes = (node for half in halves for node in half.graph.nodes if isinstance(node.target, torch._ops.OpOverload))
    # A check, such as `aten._assert_async`, has no result.
    return sum(flops_of(node.target, node.args, node.kwargs, node.meta.get("val")) or 0 for node in nodes)
