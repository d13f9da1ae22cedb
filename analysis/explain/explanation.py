"""What a step saves for its backward pass, and what recomputing each segment would change: the data of `-t explain`."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...options.selection import AUTO, Selection
from ...planning.graph import Graph
from ...rules.costs.cost import FLOPS, Cost, cost_named
from ...rules.flops import flops
from ...support.diagnostics import position_of
from ..copies.decide import Decision, decide
from ..memory.eager import eager_timeline
from ..memory.timeline import Timeline, timeline
from ..memory.xla.memory import xla_timeline
from ..step.phases import Phases
from ..step.residuals import residuals
from ..step.step import Step
from ..step.storage import storages, value_bytes
from .loop_rows import LoopRow, loop_rows
from .saved_values import OperationCounts, SavedValue, count_operations, saved_values


@dataclass(frozen=True)
class SegmentRow:
    """One segment instance. Bytes are of temporaries; `reason` is None where recomputing is worth it."""

    segment: str
    position: str
    operations: int
    saved_bytes: int
    copies: int
    tokens: int
    gates: int
    freed_bytes: int
    pinned_bytes: int
    extra_flops: int
    extra_cost: float
    reason: str | None


@dataclass(frozen=True)
class Explanation:
    """`saved_bytes`: forward values that the backward pass reads, in and outside of segments.

    `eager_peak_bytes`: the peak of an executor that starts operations as soon as they can run.
    `xla_peak_bytes`: temporaries under XLA:CPU, by model `xla`. `values`: what is saved, value by value.
    `loops`: what loops hand on to later ones, slice by slice. `cost`: what costs are reckoned by; `step_cost` and
    `extra_cost` are in `cost_unit`, and FLOPs where nothing else was asked for.
    """

    function: str
    timeline: Timeline = field(repr=False)
    eager_peak_bytes: int
    xla_peak_bytes: int
    residuals: int
    saved_bytes: int
    saved_outside_bytes: int
    step_flops: int
    cost: str
    cost_unit: str
    step_cost: float
    segments: tuple[SegmentRow, ...] = field(repr=False)
    operations: OperationCounts
    values: tuple[SavedValue, ...] = field(repr=False)
    loops: tuple[LoopRow, ...] = field(default=(), repr=False)


def explain(function: FuncOp, phases: Phases, selection: Selection = AUTO, cost: str = FLOPS) -> Explanation:
    """Explain one function, which is inlined and has phases. Raises `BadSelection`, `BadCost` and `Refusal`."""
    reckoned = cost_named(cost)
    step = Step.of(phases, costs=reckoned.of)
    crossing = residuals(phases)
    shared = storages(phases.order)
    owners = dict.fromkeys(shared.of(residual.value) for residual in crossing)
    saved = {root: value_bytes(root) for root in owners if isinstance(root.owner, Operation)}
    decided = decide(step, selection)
    decisions = decided.decisions
    segment_of = {op: decision.segment for decision in decisions for op in decision.operations}
    by_segment = dict[str, int]()
    for root, size in saved.items():
        assert isinstance(root.owner, Operation), "arguments were left out above"
        segment = segment_of.get(root.owner, "")
        by_segment[segment] = by_segment.get(segment, 0) + size
    return Explanation(
        function=function.sym_name.data,
        timeline=timeline(function, phases),
        eager_peak_bytes=eager_timeline(function, phases).peak_bytes,
        xla_peak_bytes=xla_timeline(function, phases).peak_bytes,
        residuals=len(crossing),
        saved_bytes=sum(saved.values()),
        saved_outside_bytes=by_segment.get("", 0),
        step_flops=sum(flops(op) for op in phases.order.operations),
        cost=reckoned.name,
        cost_unit=reckoned.unit,
        step_cost=sum(step.graph.cost) / reckoned.scale,
        segments=tuple(
            _row(decision, by_segment.get(decision.segment, 0), step.graph, reckoned) for decision in decisions
        ),
        operations=count_operations(phases),
        values=saved_values(phases, decided, selection),
        loops=loop_rows(function, selection),
    )


def _row(decision: Decision, saved: int, graph: Graph, cost: Cost) -> SegmentRow:
    groups = decision.groups
    return SegmentRow(
        segment=decision.segment,
        position=position_of(decision.first),
        operations=len(decision.operations),
        saved_bytes=saved,
        copies=sum(len(group.operations) for group in groups),
        tokens=sum(len(group.batches) for group in groups),
        gates=sum(len(group.gates) for group in groups),
        freed_bytes=sum(group.freed_bytes for group in groups),
        pinned_bytes=sum(group.pinned_bytes for group in groups),
        extra_flops=sum(group.extra_flops for group in groups),
        extra_cost=sum(graph.cost[op] for group in groups for op in group.operations) / cost.scale,
        reason=decision.reason,
    )
