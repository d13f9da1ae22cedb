"""The simulated rewrite: the same program as the passes write, operation by operation."""

from __future__ import annotations

import pytest

from recompute.analysis.copies.copying import CloneOptions
from recompute.analysis.memory.xla.memory import PlainStep, xla_timeline
from recompute.analysis.step.module_steps import numbered_steps
from recompute.analysis.step.phases import updated_phases
from recompute.analysis.step.step import Step
from recompute.dialects.dead_code import drop_dead_code
from recompute.options.selection import AUTO, Selection
from recompute.planning.by_segment.copy_groups import GroupOptions
from recompute.planning.graph import Graph
from recompute.planning.liveness import live_bytes
from recompute.planning.plan import Plan
from recompute.planning.simulate import as_graph, simulate
from recompute.rewriting.mark import mark_steps
from recompute.test.examples import SMALL, inlined
from recompute.transforms.clone import clone
from recompute.transforms.lower import lower

pytestmark = pytest.mark.slow

WAYS = {
    "as it is chosen": (AUTO, CloneOptions()),
    "outputs too": (Selection(outputs=True), CloneOptions()),
    "one copy": (Selection(outputs=True), CloneOptions(GroupOptions(copies=1))),
    "in a chain": (AUTO, CloneOptions(GroupOptions(chain=True))),
    "in one stage": (AUTO, CloneOptions(GroupOptions(splits_only_concurrent=False))),
}


def renumbered(graph: Graph) -> list[tuple[int, ...]]:
    """Return what each operation reads and makes, with values numbered in order of appearance."""
    number = dict[int, int]()
    both = zip(graph.reads, graph.makes, strict=True)
    return [tuple([number.setdefault(value, len(number)) for value in (*reads, *makes)]) for reads, makes in both]


@pytest.mark.slow("-none")
@pytest.mark.parametrize("target", ["stablehlo", "none"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SMALL)
def test_simulation_matches_rewritten_program(name: str, way: str, target: str) -> None:
    selection, options = WAYS[way]
    module = inlined(name).clone()
    ((function, step),) = steps = numbered_steps(module)
    graph, phases, plain = step.graph, step.phases, PlainStep.of(function)
    mark_steps(steps, selection)
    ((result),) = clone(module, options, steps).steps
    program = simulate(graph, result.plan, keeps_barriers=target == "stablehlo")
    lower(module, target)
    drop_dead_code(function.body)
    paper, written = as_graph(graph, program), Step.of(updated_phases(phases)).graph
    assert (paper.names, paper.phases, renumbered(paper)) == (written.names, written.phases, renumbered(written))
    assert (paper.flops, paper.inner_bytes, paper.effects) == (written.flops, written.inner_bytes, written.effects)
    assert (paper.literals, paper.copies) == (written.literals, written.copies)
    assert list(live_bytes(paper)) == list(live_bytes(written))
    assert plain.peak_bytes(program) == xla_timeline(function).peak_bytes


@pytest.mark.parametrize("name", SMALL)
def test_empty_plan_removes_only_dead_code(name: str) -> None:
    ((function, step),) = numbered_steps(inlined(name).clone())
    program = simulate(step.graph, Plan())
    assert not any(op.is_new for op in program.operations)
    assert PlainStep.of(function).peak_bytes(program) == xla_timeline(function).peak_bytes
