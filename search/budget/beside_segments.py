"""Plan a budget for a step whose segments have budgets of their own: first the segments, then the rest.

The planner sees the step with the segments' copies in it. Operations that read unsaved values of these segments are not
recomputed for the rest, because the segments would have to save more values for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from ...options.recompute_options import RecomputeOptions
from ...planning.by_segment.saved_storages import saved_after
from ...planning.graph import Graph
from ...planning.pairs import plan_of_pairs
from ...planning.plan import Plan
from ...planning.simulate import SimulatedProgram, as_graph, simulate
from ...transforms.phase import numbered_steps
from ...transforms.plans.limit_segments import SegmentLimits
from ..prepare import prepare

SEGMENTS_FIRST = "with the budgets of segments first, which proves nothing of other choices"
STAYS = "a segment under a budget of its own is not to save more"


@dataclass(frozen=True)
class BesideSegments:
    """The copies that segment budgets demand, by the fingerprint of each step's graph; empty if no segment has a
    budget."""

    demands: Mapping[str, SegmentLimits]

    @classmethod
    def of(cls, module: ModuleOp, options: RecomputeOptions) -> BesideSegments:
        """Find the demands of each step of the module. Raises `Refusal` as `prepare` does."""
        if not options.selection.segment_budgets:
            return cls({})
        prepared = prepare(module, replace(options, offload=""))
        steps = numbered_steps(prepared.module)
        named = [(step.graph.fingerprint, prepared.demands.of.get(function.sym_name.data)) for function, step in steps]
        return cls({fingerprint: demand for fingerprint, demand in named if demand is not None})

    def least(self, graph: Graph) -> Plan:
        """Return the plan that the segment budgets demand."""
        demand = self.demands.get(graph.fingerprint)
        return Plan() if demand is None else demand.plan

    def plan(self, graph: Graph, planner: Callable[[Graph], Plan], chain: bool = False) -> Plan:
        """Combine the demanded copies with those of the planner. `chain`: as in `plan_of_pairs`.

        Raises the errors of the planner, and `NoPlan` if the two cannot be combined."""
        demand = self.demands.get(graph.fingerprint)
        return planner(graph) if demand is None else _beside(graph, demand, planner, chain)


def _beside(graph: Graph, demand: SegmentLimits, planner: Callable[[Graph], Plan], chain: bool) -> Plan:
    # The solvers import numba, if it is installed: only callers that need them wait for it.
    from ...planning.solvers.result import NoPlan
    from ...planning.solvers.solve_graph import with_views

    program = simulate(graph, demand.plan, ordered=False)
    try:
        more = planner(_with_fixed(graph, demand, program))
    except NoPlan as error:
        raise NoPlan(f"{SEGMENTS_FIRST}: {error}") from error
    if not more.copies:
        return demand.plan
    place = _places(program)
    pairs = {(group.before, op) for group in demand.plan.groups for op in group.operations}
    pairs |= {(place[group.before], program.operations[op].origin) for group in more.groups for op in group.operations}
    plan = plan_of_pairs(graph, with_views(graph, pairs), chain=chain)
    if (why := demand.broken(graph, plan)) is not None:
        raise NoPlan(f"beside the budgets of segments no plan was found: {why}")
    return plan


def _with_fixed(graph: Graph, demand: SegmentLimits, program: SimulatedProgram) -> Graph:
    """Build the graph of the step with the demanded copies; operations whose recomputation would make a segment save
    more are not recomputable in it."""
    members = frozenset[int]().union(*demand.segments.values())
    saved = saved_after(graph, demand.plan, members)
    dropped = {v for op in members for v in graph.makes[op] if graph.root[v] == v} - saved - graph.constants
    fixed = {op for op, reads in enumerate(graph.reads) if any(graph.root[v] in dropped for v in reads)}
    simulated = as_graph(graph, program)
    origins = [operation.origin for operation in program.operations]
    effects = [STAYS if origin in fixed else reason for origin, reason in zip(origins, simulated.effects, strict=True)]
    return replace(simulated, effects=tuple(effects))


def _places(program: SimulatedProgram) -> list[int]:
    """Map each operation of the program to the original operation that it is, or before which the copy stands."""
    places, behind = list[int](), -1
    for operation in reversed(program.operations):
        behind = behind if operation.is_new else operation.origin
        places.append(behind)
    return places[::-1]
