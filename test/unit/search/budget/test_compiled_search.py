"""The search that compiles candidates, with a backend whose sizes are given."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import UNCUT
from recompute.options.recompute_options import DEFAULT_OPTIONS
from recompute.planning.calibrated_search import Prediction
from recompute.planning.plan_file import StepPlan
from recompute.planning.solvers.result import Stop, never_stop
from recompute.search.budget.compiled_refusal import BudgetNotReached
from recompute.search.budget.compiled_search import CompiledSearch
from recompute.search.budget.compiler_backend import SearchRequest
from recompute.search.candidate_plans.plan_origin import PlanOrigin, PlanSource
from recompute.search.candidate_plans.pool import ModuleCandidate, Pool
from recompute.support.progress import ProgressLine

STEP = "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"


@dataclass(frozen=True)
class Rewrite:
    extra_flops: int
    copies: int = 1
    plans: tuple[StepPlan, ...] = ()


@dataclass
class GivenSizes:
    """A backend. `sizes`: the bytes of a compiled rewrite, by its extra FLOPs; the rewrite without a budget has 0."""

    sizes: dict[int, int]
    key: str = "given"
    finals: list[int] = field(default_factory=list[int])

    def pool(self, stop: Stop) -> Pool:
        shares = {work: size / 2000 for work, size in self.sizes.items() if work}
        origin = PlanOrigin(PlanSource.SOLVER)
        return Pool([ModuleCandidate((origin,), (), UNCUT, Prediction(need, work, 1)) for work, need in shares.items()])

    def rewrite(self, candidate: ModuleCandidate | None) -> Rewrite | None:
        return Rewrite(0 if candidate is None else int(candidate.prediction.work))

    def compile(self, rewritten: Rewrite, is_final: bool) -> int:
        if is_final:
            self.finals.append(rewritten.extra_flops)
        return self.sizes[rewritten.extra_flops]

    def measured_bytes(self, compiled: int) -> int:
        return compiled


def search_within(limit_bytes: int | None, backend: GivenSizes) -> CompiledSearch[Rewrite, int]:
    request = SearchRequest(
        name="step",
        module=parse_module(STEP, "step"),
        options=DEFAULT_OPTIONS,
        budget="min" if limit_bytes is None else str(limit_bytes),
        plain_bytes=2000,
        limit_bytes=limit_bytes,
        line=ProgressLine("step"),
        stop=never_stop,
    )
    return CompiledSearch(request, backend, tries=4)


def test_cheapest_fitting_candidate_is_compiled_to_run():
    backend = GivenSizes({0: 1900, 100: 1500, 200: 900, 300: 500})
    best = search_within(1000, backend).best()
    assert (best.rewritten.extra_flops, best.measured_bytes, best.is_final) == (200, 900, True)
    assert backend.finals == [200]


def test_choice_without_a_budget_is_used_if_only_it_fits():
    backend = GivenSizes({0: 900, 100: 1500})
    best = search_within(1000, backend).best()
    assert best.rewritten.extra_flops == 0 and backend.finals == [0]


def test_candidates_of_a_refused_budget_are_compiled_only_for_measurement() -> None:
    backend = GivenSizes({0: 1900, 100: 1500, 200: 1200})
    with pytest.raises(BudgetNotReached):
        search_within(1000, backend).best()
    assert backend.finals == []


def test_refusal_lists_the_compiled_candidates():
    with pytest.raises(BudgetNotReached) as refused:
        search_within(1000, GivenSizes({0: 1900, 100: 1500, 200: 1200})).best()
    first, *lines = refused.value.reason.splitlines()
    assert refused.value.least_bytes == 1200
    limit = "1000 B of 2.0 KiB of temporaries beside the arguments and results"
    least = "the smallest compiled candidate needs 1.2 KiB (1200 bytes)"
    assert first == f"no plan is within the budget 1000, {limit}: {least}"
    assert lines == [
        "  a solver's plan: 1.2 KiB predicted, 1.2 KiB by the compiler, above the budget; 200 FLOPs more",
        "  a solver's plan: 1.5 KiB predicted, 1.5 KiB by the compiler, above the budget; 100 FLOPs more",
        "  as without a budget: 1.9 KiB by the compiler, above the budget; 0 FLOPs more",
    ]


def test_minimum_is_ready_to_run():
    backend = GivenSizes({0: 1900, 100: 1210, 200: 1200})
    best = search_within(None, backend).best()
    assert best.measured_bytes == 1200 and best.is_final and backend.finals == [200]
