"""Plan a step within a budget if some of its segments have their own budgets. These segments are planned first, then
all other operations.

The planner for the other operations receives the graph of the step with the copies that the segment budgets require.
The planner must not recompute an operation that reads an unsaved value of a segment with a budget, because the segment
would have to save this value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from ..analysis.step.module_steps import numbered_steps
from ..options.recompute_options import RecomputeOptions
from ..planning.by_segment.saved_storages import saved_after
from ..planning.graph import Graph
from ..planning.pairs import plan_of_pairs
from ..planning.plan import Plan
from ..planning.simulate import SimulatedProgram, as_graph, simulate
from ..planning.solvers.result import NameOfOperation, NoPlan
from .local_choices.segments_within_budgets import SegmentLimits
from .prepare import prepare

SEGMENTS_FIRST = "the segment budgets are planned first, so nothing is proved about other plans"
STAYS = "recomputing it would require a segment with a budget to save more"


@dataclass(frozen=True)
class SegmentLimitsByGraph:
    """The byte limits of segments with budgets, for each step of a module. `limits`: the limits of each step, by the
    fingerprint of the step's graph; empty if no segment has a budget."""

    limits: Mapping[str, SegmentLimits]

    @classmethod
    def of(cls, module: ModuleOp, options: RecomputeOptions) -> SegmentLimitsByGraph:
        """Collect the limits for each step of the module. Raises `Refusal` in the same cases as `prepare`."""
        if not options.selection.segment_budgets:
            return cls({})
        prepared = prepare(module, replace(options, offload=""))
        steps = numbered_steps(prepared.module)
        named = [(step.graph.fingerprint, prepared.limits.of.get(function.sym_name.data)) for function, step in steps]
        return cls({fingerprint: limits for fingerprint, limits in named if limits is not None})

    def required_plan(self, graph: Graph) -> Plan:
        """Return the plan that meets the segment budgets and has no other copies."""
        limits = self.limits.get(graph.fingerprint)
        return Plan() if limits is None else limits.plan

    def plan(self, graph: Graph, planner: Callable[[Graph], Plan], chain: bool = False) -> Plan:
        """Return a plan with the copies for the segment budgets and the copies that a planner adds outside these
        segments.

        Args:
            chain: As in `plan_of_pairs`.

        Raises:
            NoPlan: If the planner finds no plan, or if the combined plan exceeds a segment budget.
        """
        limits = self.limits.get(graph.fingerprint)
        return planner(graph) if limits is None else _plan_beside(graph, limits, planner, chain)


def _plan_beside(graph: Graph, limits: SegmentLimits, planner: Callable[[Graph], Plan], chain: bool) -> Plan:
    # The solvers are imported here, so that only callers that need them wait for the import.
    from ..planning.solvers.solve_graph import pairs_with_views

    program = simulate(graph, limits.plan, keeps_barriers=False)
    try:
        more = planner(_fix_copies(graph, limits, program))
    except NoPlan as error:
        origins = [operation.origin for operation in program.operations]
        raise _after_segments(error, origins) from error
    if not more.copies:
        return limits.plan
    place = _places(program)
    pairs = {(group.before, op) for group in limits.plan.groups for op in group.operations}
    pairs |= {(place[group.before], program.operations[op].origin) for group in more.groups for op in group.operations}
    plan = plan_of_pairs(graph, pairs_with_views(graph, pairs), chain=chain)
    if (why := limits.violation(graph, plan)) is not None:
        raise NoPlan("and the segment budgets", lambda _: why)
    return plan


def _after_segments(error: NoPlan, origins: Sequence[int]) -> NoPlan:
    """Return the error for the original step, given the error for the graph that includes the copies for segment
    budgets.

    `origins`: for each operation of the graph with copies, its index in the step."""

    def reason(name: NameOfOperation | None) -> str:
        return f"{SEGMENTS_FIRST}: {error.reason(name and (lambda op: name(origins[op])))}"

    return NoPlan(error.budget, reason)


def _fix_copies(graph: Graph, limits: SegmentLimits, program: SimulatedProgram) -> Graph:
    """Return the graph of the step with the copies for its segments. In this graph, an operation is marked as not
    repeatable if repeating it would require a segment to save more values."""
    members = frozenset[int]().union(*limits.segments.values())
    saved = saved_after(graph, limits.plan, members)
    dropped = {v for op in members for v in graph.makes[op] if graph.root[v] == v} - saved - graph.constants
    fixed = {op for op, reads in enumerate(graph.reads) if any(graph.root[v] in dropped for v in reads)}
    simulated = as_graph(graph, program)
    origins = [operation.origin for operation in program.operations]
    effects = [STAYS if origin in fixed else reason for origin, reason in zip(origins, simulated.effects, strict=True)]
    return replace(simulated, effects=tuple(effects))


def _places(program: SimulatedProgram) -> list[int]:
    """Return, for each operation of the program, its index in the original graph. For an inserted operation, this is
    the index of the original operation before which it was inserted."""
    places, following = list[int](), -1
    for operation in reversed(program.operations):
        following = following if operation.is_new else operation.origin
        places.append(following)
    return places[::-1]
