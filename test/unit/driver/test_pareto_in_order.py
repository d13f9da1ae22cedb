"""Monotone curves over twenty budgets, each of which is kept, for the example steps and the stored graph."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from recompute.analysis.step.step import Step
from recompute.driver.pareto_in_order import SweepOptions, SweptStep, swept_steps
from recompute.planning.liveness import peak_bytes
from recompute.planning.pairs import plan_of_pairs
from recompute.planning.simulate import as_graph, simulate
from recompute.planning.solvers.effort import Effort
from recompute.planning.solvers.graph_file import read_graph
from recompute.planning.solvers.incumbent import Incumbent
from recompute.planning.solvers.problem import Pair
from recompute.planning.solvers.result import Result, never
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.planning.solvers.solve_graph import with_views
from recompute.planning.solvers.solvers_by_name import solve
from recompute.planning.solvers.sweep import Outcome, sweep
from recompute.search.prepare import prepare
from recompute.test.examples import SMALL, original
from recompute.transforms.phase import numbered_steps

GRAPHS = sorted((Path(__file__).resolve().parents[3] / "benchmarks" / "graphs").glob("*.json.gz"))
COUNT = 20


def swept(name: str, count: int = COUNT, solver: str = "greedy") -> list[SweptStep]:
    how = SweepOptions(count, solver, Effort.brief(), None, lambda _: None, never)
    return swept_steps(original(name), how)


def assert_one_way(outcomes: Sequence[Outcome]) -> list[Result]:
    """Check that from small to large budgets no plan is missing after the first one, costs and bounds fall, and peaks
    keep the budgets."""
    results = [one for one in outcomes if isinstance(one, Result)]
    assert list(outcomes[-len(results) :]) == results and results[-1].extra_cost == 0
    for one in results:
        assert one.peak_bytes <= one.budget and one.bound_percent <= one.percent
    for low, high in pairwise(results):
        assert low.extra_cost >= high.extra_cost and low.peak_bytes <= high.peak_bytes
        assert low.bound_percent >= high.bound_percent - 1e-9
    return results


@pytest.mark.slow("branches", "unet", "gpt_bf16", "mindspore_attention", "mlp20", "resnet")
@pytest.mark.parametrize("name", SMALL)
def test_steps_go_one_way(name: str) -> None:
    for one in swept(name):
        results = assert_one_way(one.outcomes)
        assert [point.percent for point in one.curve.points] == [result.percent for result in results]
        for point in one.curve.points:
            assert sum(segment.percent for segment in point.recomputed_segments) == pytest.approx(point.percent)
            assert point.peak_bytes >= one.curve.minimum_bytes or not point.recomputed_segments


@pytest.mark.slow("gpt24L")
@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.name)
def test_graphs_go_one_way(path: Path) -> None:
    problem = read_graph(gzip.decompress(path.read_bytes()).decode(), path.name)
    peak = evaluate(problem, sequence_of(problem, ())).peak_bytes

    def solved(budget: int, starts: Iterable[frozenset[Pair]]) -> Outcome:
        return solve(problem, budget, "auto", Incumbent(problem, budget), starts, Effort.brief())

    results = assert_one_way(sweep([peak * at // COUNT for at in range(1, COUNT + 1)], solved))
    assert len(results) >= COUNT // 2
    for one in results:
        found = evaluate(problem, sequence_of(problem, one.pairs))
        assert (found.peak_bytes, found.extra_cost) == (one.peak_bytes, one.extra_cost)


def test_the_peaks_are_those_of_the_step_rewritten() -> None:
    (one,) = swept("mlp.small.mlir", 5, "auto")
    prepared = prepare(original("mlp.small.mlir"))
    ((_, step),) = numbered_steps(prepared.module)
    results = [result for result in one.outcomes if isinstance(result, Result) and result.pairs]
    assert results and one.plain_peak_bytes == peak_bytes(step.graph)
    for result in results:
        assert rewritten_peak(step, result) == result.peak_bytes


def rewritten_peak(step: Step, result: Result) -> int:
    plan = plan_of_pairs(step.graph, with_views(step.graph, result.pairs))
    return peak_bytes(as_graph(step.graph, simulate(step.graph, plan, keeps_barriers=False)))


def test_what_runs_again_is_told_by_segment_and_value() -> None:
    (one,) = swept("chain.small.mlir", 4, "auto")
    first = one.curve.points[0]
    assert {segment.segment for segment in first.recomputed_segments} >= {"block0", "block1"}
    value = first.recomputed_segments[0].values[0]
    assert value.startswith("stablehlo.") and "examples/models/chain.py:" in value
    assert one.curve.points[-1].recomputed_segments == ()


def test_a_stop_keeps_what_was_found() -> None:
    done = list[int]()

    def solved(budget: int, starts: Iterable[frozenset[Pair]]) -> Outcome:
        done.append(budget)
        return solve(problem, budget, "greedy", effort=Effort.brief())

    problem = swept("chain.small.mlir", 1)[0].problem
    peak = evaluate(problem, sequence_of(problem, ())).peak_bytes
    budgets = [peak // 4, peak // 2, peak]
    outcomes = sweep(budgets, solved, lambda: len(done) >= 2)
    assert done == budgets[:2]
    low, high, rest = outcomes
    assert isinstance(low, Result) and isinstance(high, Result) and isinstance(rest, Result)
    assert low.finished and high.finished and not rest.finished
    assert (rest.pairs, rest.budget) == (high.pairs, peak)


def test_the_sweep_of_a_step_can_be_stopped() -> None:
    said = list[str]()

    def stop() -> bool:
        return sum(line.endswith(": solving") for line in said) >= 3

    how = SweepOptions(5, "greedy", Effort.brief(), None, said.append, stop)
    (one,) = swept_steps(original("chain.small.mlir"), how)
    assert [result.finished for result in one.outcomes if isinstance(result, Result)][-2:] == [False, False]
    assert not one.curve.points[-1].finished and one.curve.points[0].finished
    # The last two are what the third, or one before it, has found.
    last, other = one.outcomes[-1], one.outcomes[-2]
    assert isinstance(last, Result) and isinstance(other, Result)
    assert last.pairs == other.pairs != frozenset()
