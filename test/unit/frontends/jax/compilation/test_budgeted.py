"""The search of compiled candidates: at most `MAX_COMPILED` compilations, and `MAX_EXTRA_CANDIDATES` before a refusal;
time limits, interrupts, and measurements of earlier searches."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import recompute
from recompute.driver.rewrites.rewritten import Rewritten
from recompute.frontends.jax.compilation import budgeted as budgets
from recompute.frontends.jax.compilation.budgeted import MAX_COMPILED
from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import UNCUT
from recompute.options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from recompute.planning.calibrated_search import Prediction
from recompute.planning.solvers.result import Stop, never_stop
from recompute.search.budget.rounds import MAX_EXTRA_CANDIDATES, Rounds
from recompute.search.candidate_plans.plan_origin import PlanOrigin, PlanSource
from recompute.search.candidate_plans.pool import ModuleCandidate, Pool
from recompute.search.candidate_plans.pool_cache import forget_pools
from recompute.support.diagnostics import Refusal
from recompute.support.interrupts import Interrupt
from recompute.support.progress import ProgressLine
from recompute.test.unit.frontends.jax.five_layers import STEP, five_layers
from recompute.test.unit.frontends.jax.steps import batch, jax, temporaries, weights

TRIVIAL = "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"


def search_within_1000_bytes(compilers: budgets.Compilers, stop: Stop, time_limit: float | None = None) -> Any:
    """Return the search for a trivial step that needs 2000 bytes."""
    return budgets._CompilerSearch(  # pyright: ignore[reportPrivateUsage]
        budgets._Request(  # pyright: ignore[reportPrivateUsage]
            name="step",
            module=parse_module(TRIVIAL, "step"),
            options=DEFAULT_OPTIONS,
            budget="1000",
            plain_bytes=2000,
            limit_bytes=1000,
            compilers=compilers,
            line=ProgressLine("step"),
            stop=stop,
            time_limit=time_limit,
        )
    )


@pytest.mark.slow
def test_later_candidates_are_compiled_unoptimized(monkeypatch: pytest.MonkeyPatch) -> None:
    levels, compile = list[bool](), jax.stages.Lowered.compile

    def counted(lowered: Any, options: Any = None) -> Any:
        levels.append("xla_backend_optimization_level" in (options or {}))
        return compile(lowered, options)

    monkeypatch.setattr(jax.stages.Lowered, "compile", counted)
    within = recompute.jax.jit(STEP, budget="min").lower(weights(), batch()).within
    assert within is not None and len(within.rounds) > 1
    assert levels[: len(within.rounds) + 1] == [False, False, *([True] * (len(within.rounds) - 1))]
    assert levels[len(within.rounds) + 1 :] in ([], [False])
    assert temporaries(within.compiled) == min(
        actual.measured_bytes for actual in within.rounds if actual.measured_bytes is not None
    )


def test_refusal_lists_smallest_candidate_of_earlier_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = PlanOrigin(PlanSource.SOLVER)
    pool = Pool([ModuleCandidate((origin,), (), UNCUT, Prediction(0.5, 1.0, 1))])
    pool.unbudgeted["stub"] = 1500.0
    rewritten = SimpleNamespace(module=None, plans=(), copies=1, extra_flops=0)
    monkeypatch.setattr(budgets, "pool_of", lambda *_: pool)
    monkeypatch.setattr(budgets, "rewrite", lambda *_: rewritten)
    monkeypatch.setattr(budgets, "reported_bytes", lambda *_: 2000)
    compilers = budgets.Compilers(lambda: None, lambda *_: None, "stub")  # pyright: ignore[reportArgumentType]
    search = search_within_1000_bytes(compilers, never_stop)
    with pytest.raises(Refusal, match=r"the smallest compiled candidate needs 1\.5 KiB") as refused:
        search.best()
    assert refused.value.reason.splitlines()[-1] == "  as without a budget: 1.5 KiB by the compiler, above the budget"


def test_no_more_candidates_are_compiled_than_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The announced number includes candidates of other kinds, which are compiled if no candidate fits."""
    predictions = [Prediction(0.5, float(work), work) for work in range(MAX_COMPILED + MAX_EXTRA_CANDIDATES + 1)]
    origin = PlanOrigin(PlanSource.SOLVER)
    pool = Pool([ModuleCandidate((origin,), (), UNCUT, prediction) for prediction in predictions])
    rewritten = SimpleNamespace(module=None, plans=(), copies=1, extra_flops=0)
    monkeypatch.setattr(budgets, "pool_of", lambda *_: pool)
    monkeypatch.setattr(budgets, "rewrite", lambda *_: rewritten)
    monkeypatch.setattr(budgets, "reported_bytes", lambda *_: 2000)
    line, progress = ProgressLine("step"), list[tuple[str, float]]()

    def compiled(*_: Any) -> Any:
        progress.append((line.phase, line.share))

    compilers = budgets.Compilers(lambda: None, compiled, "stub")  # pyright: ignore[reportArgumentType]
    module = parse_module(TRIVIAL, "step")
    search = budgets._CompilerSearch(  # pyright: ignore[reportPrivateUsage]
        budgets._Request(  # pyright: ignore[reportPrivateUsage]
            name="step",
            module=module,
            options=DEFAULT_OPTIONS,
            budget="1000",
            plain_bytes=2000,
            limit_bytes=1000,
            compilers=compilers,
            line=line,
            stop=never_stop,
        )
    )
    with pytest.raises(Refusal, match=r"the smallest compiled candidate needs 2\.0 KiB"):
        search.best()
    # The choice without a budget is announced too; here it equals a candidate, and is not compiled again.
    most = MAX_COMPILED + MAX_EXTRA_CANDIDATES + 1
    assert [phase for phase, _ in progress] == [f"plan {number} of at most {most}" for number in range(1, most)]
    shares = [share for _, share in progress]
    assert shares == sorted(shares) and shares[-1] < 1


@pytest.mark.parametrize(
    ("interrupts", "reason"),
    [(1, "was found before the interrupt, "), (0, "was found within the time limit of 2 s, .*; give the search more")],
)
def test_error_of_stopped_search_does_not_blame_the_budget(
    interrupts: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "pool_of", lambda *_: Pool())
    monkeypatch.setattr(budgets, "rewrite", lambda *_: SimpleNamespace(module=None, plans=(), copies=1, extra_flops=0))
    monkeypatch.setattr(budgets, "reported_bytes", lambda *_: 2000)

    def compiled(*_: Any) -> Any:
        monkeypatch.setattr(Interrupt, "count", Interrupt.count + interrupts)

    compilers = budgets.Compilers(lambda: None, compiled, "stub")  # pyright: ignore[reportArgumentType]
    search = search_within_1000_bytes(compilers, lambda: True, time_limit=2)
    with pytest.raises(Refusal, match=f"no plan for the budget 1000 {reason}"):
        search.best()


@pytest.mark.slow
def test_time_limited_search_returns_the_step_without_budget_if_it_fits(plain: Any) -> None:
    forget_pools()
    ordinary = temporaries(recompute.jax.jit(STEP).lower(*five_layers()).compile())
    share = (ordinary + 1) / temporaries(plain)
    lowered = recompute.jax.jit(STEP, budget=share, time_limit=1e-6).lower(*five_layers())
    assert temporaries(lowered.compile()) <= ordinary + 1
    with pytest.raises(Refusal, match="was found within the time limit of 1e-06 s, "):
        recompute.jax.jit(STEP, budget=0.05, time_limit=1e-6).lower(*five_layers())


def test_refusal_proposes_more_time_only_if_the_search_was_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that ends by itself after its limit, as its last compilation was long, would find no more."""
    forget_pools()
    with pytest.raises(Refusal, match=r"within the time limit of 1e-06 s.*give the search more time with"):
        recompute.jax.jit(STEP, budget=0.05, time_limit=1e-6).lower(weights(), batch())
    is_late, original = list[bool](), Rounds.best

    def late(search: Any, most: int) -> Any:
        best = original(search, most)
        is_late.append(True)
        return best

    @contextmanager
    def limited(_: Any) -> Generator[Any]:
        yield lambda: bool(is_late)

    monkeypatch.setattr(Rounds, "best", late)
    monkeypatch.setattr(budgets, "stop_predicate", limited)
    with pytest.raises(Refusal, match=r"no plan is within the budget 0\.05") as refused:
        recompute.jax.jit(STEP, budget=0.05, time_limit=1).lower(weights(), batch())
    assert is_late and "time_limit" not in refused.value.reason


def test_later_budgets_reuse_measurements() -> None:
    """A budget that an earlier one reached is not refused, and `min` needs no more than the earlier measurements."""
    forget_pools()
    first, again = (recompute.jax.jit(STEP, budget=0.6).report(*five_layers()) for _ in range(2))
    reached = first.chosen.temporaries
    assert reached is not None and first.chosen.flops is not None and again.chosen.flops is not None
    assert again.chosen.flops <= first.chosen.flops and again.search.candidates[-1].fits
    least = recompute.jax.jit(STEP, budget="min").report(*five_layers()).chosen.temporaries
    assert least is not None and least <= reached


def test_second_min_budget_skips_the_rewrite_without_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_pools()
    plans, original = list[bool](), budgets.rewrite

    def counted(module: ModuleOp, options: RecomputeOptions) -> Rewritten:
        plans.append(options.plan is not None)
        return original(module, options)

    monkeypatch.setattr(budgets, "rewrite", counted)
    first = recompute.jax.jit(STEP, budget="min").report(*five_layers())
    assert False in plans
    plans.clear()
    again = recompute.jax.jit(STEP, budget="min").report(*five_layers())
    assert plans and all(plans)
    assert again.chosen.temporaries == first.chosen.temporaries
