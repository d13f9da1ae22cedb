"""Monotone curves over twenty budgets, each of which is met, for the example steps and the stored graph."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from recompute.analysis.step.module_steps import numbered_steps
from recompute.analysis.step.step import Step
from recompute.driver.budgets.pareto_in_order import SweepOptions, SweptStep, swept_steps
from recompute.mlir_io.parser import parse_module
from recompute.planning.liveness import peak_bytes
from recompute.planning.pairs import plan_of_pairs
from recompute.planning.simulate import as_graph, simulate
from recompute.planning.solvers.effort import Effort
from recompute.planning.solvers.graph_file import read_graph
from recompute.planning.solvers.incumbent import Incumbent
from recompute.planning.solvers.problem import Pair, Problem
from recompute.planning.solvers.result import Result, never_stop
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.planning.solvers.solve_graph import pairs_with_views
from recompute.planning.solvers.solvers_by_name import solve
from recompute.planning.solvers.sweep import Outcome, sweep
from recompute.search.prepare import prepare
from recompute.test.examples import SMALL, original

GRAPHS = sorted((Path(__file__).resolve().parents[4] / "benchmarks" / "solvers" / "graphs").glob("*.json.gz"))
COUNT = 20


class SilentObserver:
    """An observer that ignores everything."""

    def begin(self, name: str, problem: Problem, plain_peak_bytes: int) -> None:
        return None

    def set_phase(self, phase: str, share: float | None = None) -> None:
        return None

    def report(self, budget: int, outcome: Outcome) -> None:
        return None


def swept(name: str, count: int = COUNT, solver: str = "greedy") -> list[SweptStep]:
    result = SweepOptions(
        count=count,
        solver=solver,
        effort=Effort.brief(),
        seconds=None,
        observer=SilentObserver(),
        stop=never_stop,
    )
    return list(swept_steps(original(name), result))


def assert_monotone(outcomes: Sequence[Outcome]) -> list[Result]:
    """Check that from small to large budgets no plan is missing after the first one, costs and bounds fall, and peaks
    keep the budgets."""
    results = [outcome for outcome in outcomes if isinstance(outcome, Result)]
    assert list(outcomes[-len(results) :]) == results and results[-1].extra_cost == 0
    for result in results:
        assert result.peak_bytes <= result.budget and result.bound_percent <= result.percent
    for low, high in pairwise(results):
        assert low.extra_cost >= high.extra_cost and low.peak_bytes <= high.peak_bytes
        assert low.bound_percent >= high.bound_percent - 1e-9
    return results


@pytest.mark.slow("branches", "unet", "gpt", "mindspore_attention", "mlp20", "resnet")
@pytest.mark.parametrize("name", SMALL)
def test_curves_of_steps_are_monotone(name: str) -> None:
    for item in swept(name):
        results = assert_monotone(item.outcomes)
        assert [point.percent for point in item.curve.points] == [result.percent for result in results]
        for point in item.curve.points:
            assert sum(segment.percent for segment in point.recomputed_segments) == pytest.approx(point.percent)
            assert point.peak_bytes >= item.curve.minimum_bytes or not point.recomputed_segments


@pytest.mark.slow("gpt24L")
@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.name)
def test_curves_of_graphs_are_monotone(path: Path) -> None:
    problem = read_graph(gzip.decompress(path.read_bytes()).decode(), path.name)
    peak = evaluate(problem, sequence_of(problem, ())).peak_bytes

    def solved(budget: int, starts: Iterable[frozenset[Pair]]) -> Outcome:
        return solve(problem, budget, "auto", Incumbent(problem, budget), starts, Effort.brief())

    results = assert_monotone(sweep([peak * at // COUNT for at in range(1, COUNT + 1)], solved))
    assert len(results) >= COUNT // 2
    for result in results:
        actual = evaluate(problem, sequence_of(problem, result.pairs))
        assert (actual.peak_bytes, actual.extra_cost) == (result.peak_bytes, result.extra_cost)


def test_peaks_equal_those_of_the_rewritten_step() -> None:
    (first,) = swept("mlp.small.mlir", 5, "auto")
    prepared = prepare(original("mlp.small.mlir"))
    ((_, step),) = numbered_steps(prepared.module)
    results = [result for result in first.outcomes if isinstance(result, Result) and result.pairs]
    assert results and first.plain_peak_bytes == peak_bytes(step.graph)
    for result in results:
        assert rewritten_peak(step, result) == result.peak_bytes


def rewritten_peak(step: Step, result: Result) -> int:
    plan = plan_of_pairs(step.graph, pairs_with_views(step.graph, result.pairs))
    return peak_bytes(as_graph(step.graph, simulate(step.graph, plan, keeps_barriers=False)))


def test_recomputation_is_listed_by_segment_and_value() -> None:
    (actual,) = swept("chain.small.mlir", 4, "auto")
    first = actual.curve.points[0]
    assert {segment.segment for segment in first.recomputed_segments} >= {"block0", "block1"}
    value = first.recomputed_segments[0].values[0]
    assert value.startswith("stablehlo.") and "examples/models/chain.py:" in value
    assert actual.curve.points[-1].recomputed_segments == ()


def test_stopped_sweep_keeps_found_points() -> None:
    items = list[int]()

    def solved(budget: int, starts: Iterable[frozenset[Pair]]) -> Outcome:
        items.append(budget)
        return solve(problem, budget, "greedy", effort=Effort.brief())

    problem = swept("chain.small.mlir", 1)[0].problem
    peak = evaluate(problem, sequence_of(problem, ())).peak_bytes
    budgets = [peak // 4, peak // 2, peak]
    outcomes = sweep(budgets, solved, lambda: len(items) >= 2)
    assert items == budgets[:2]
    low, high, rest = outcomes
    assert isinstance(low, Result) and isinstance(high, Result) and isinstance(rest, Result)
    assert low.finished and high.finished and not rest.finished
    assert (rest.pairs, rest.budget) == (high.pairs, peak)


def test_sweep_of_a_step_can_be_stopped() -> None:
    message, reported = list[str](), list[Outcome]()

    class Recorder(SilentObserver):
        def set_phase(self, phase: str, share: float | None = None) -> None:
            message.append(phase)

        def report(self, budget: int, outcome: Outcome) -> None:
            reported.append(outcome)

    def stop() -> bool:
        return sum(line.endswith(": solving") for line in message) >= 3

    actual = SweepOptions(count=5, solver="greedy", effort=Effort.brief(), seconds=None, observer=Recorder(), stop=stop)
    (first,) = swept_steps(original("chain.small.mlir"), actual)
    assert [result.finished for result in first.outcomes if isinstance(result, Result)][-2:] == [False, False]
    assert not first.curve.points[-1].finished and first.curve.points[0].finished
    # Every budget is reported in ascending order, those that were not tried included.
    assert [outcome.finished for outcome in reported] == [outcome.finished for outcome in first.outcomes]
    # The last two are what the third, or one before it, has found.
    last, other = first.outcomes[-1], first.outcomes[-2]
    assert isinstance(last, Result) and isinstance(other, Result)
    assert last.pairs == other.pairs != frozenset()


def test_name_states_the_peak_with_whole_loops() -> None:
    jax: Any = pytest.importorskip("jax")
    jnp = jax.numpy

    def loss(weights: Any, x: Any) -> Any:
        def layer(h: Any, weight: Any) -> tuple[Any, None]:
            return h + jnp.sin(jnp.tanh(h @ weight)), None

        x, _ = jax.lax.scan(layer, x, weights)
        return jnp.sum(jnp.cos(x) * x)

    lowered = jax.jit(jax.grad(loss)).lower(jnp.ones((8, 16, 16)), jnp.ones((64, 16)))
    options = SweepOptions(
        count=1, solver="greedy", effort=Effort.brief(), seconds=None, observer=SilentObserver(), stop=never_stop
    )
    (first,) = swept_steps(parse_module(lowered.as_text(debug_info=True), "step.mlir"), options)
    whole = re.search(r"loops cut for \d+ FLOPs more \(with whole loops, the step needs ([\d.]+) KiB\)", first.name)
    assert whole is not None and float(whole[1]) * 1024 > first.plain_peak_bytes
