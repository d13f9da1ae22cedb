"""Budgets with the real compiler: kept by its own count within `MAX_COMPILED` compilations, with equal results, or
refused after at most `MAX_EXTRA_CANDIDATES` others."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import recompute
from recompute.driver.rewrites.rewritten import Rewritten
from recompute.examples.models.chain import build as build_chain
from recompute.frontends.jax.bridge.crossing import module_of
from recompute.frontends.jax.compilation import budgeted as budgets
from recompute.frontends.jax.compilation import device_limits
from recompute.frontends.jax.compilation.allocation import fixed_bytes
from recompute.frontends.jax.compilation.budgeted import MAX_COMPILED
from recompute.frontends.jax.compilation.variants import Variant
from recompute.frontends.jax.keywords import budget_option
from recompute.frontends.jax.lowering import rewrite_within
from recompute.frontends.jax.lowering.lowered import Lowered
from recompute.frontends.jax.messages.call_site_warnings import BarriersDropped, NothingSaved
from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import UNCUT
from recompute.options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from recompute.planning.calibrated_search import Prediction
from recompute.planning.solvers.result import never_stop
from recompute.search.budget.rounds import MAX_EXTRA_CANDIDATES, Rounds
from recompute.search.candidate_plans.plan_origin import PlanOrigin, PlanSource
from recompute.search.candidate_plans.pool import ModuleCandidate, Pool
from recompute.search.candidate_plans.pool_cache import forget_pools
from recompute.support.diagnostics import Refusal
from recompute.support.interrupts import Interrupt
from recompute.support.progress import ProgressLine
from recompute.support.units import readable_bytes
from recompute.test.unit.frontends.jax.steps import batch, far_apart, jax, mlp, temporaries, weights
from recompute.test.unit.transforms.segment_meter import saved_by_scope
from recompute.transforms.preparation.timelines import flat_copy

STEP = mlp().step
TRIVIAL = "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"


def five_layers() -> tuple[Any, Any]:
    return weights(5, 16, 64), batch(512, 16)


@pytest.fixture(scope="module")
def plain() -> Any:
    return jax.jit(STEP).lower(*five_layers()).compile()


@pytest.mark.slow("0.75")
@pytest.mark.parametrize("share", [0.75, 0.45])
def test_fractional_budget_limits_xla_temporaries(share: float, plain: Any) -> None:
    lowered = recompute.jax.jit(STEP, budget=share).lower(*five_layers())
    compiled, within = lowered.compile(), lowered.within
    assert within is not None and 1 <= len(within.rounds) <= MAX_COMPILED
    assert temporaries(compiled) <= share * temporaries(plain) == pytest.approx(within.limit_bytes, abs=1)
    assert temporaries(compiled) == min(
        actual.measured_bytes for actual in within.rounds if actual.fits and actual.measured_bytes is not None
    )
    assert lowered.rewritten is not None and lowered.rewritten.proof is not None and lowered.rewritten.proof.proved
    assert far_apart(compiled(*five_layers()), plain(*five_layers())) == []


@pytest.mark.slow
def test_larger_budget_needs_no_more_work(plain: Any) -> None:
    work = [flops(recompute.jax.jit(STEP, budget=share).lower(*five_layers()).compile()) for share in (0.8, 0.4)]
    everything = flops(recompute.jax.jit(STEP, segments="block*").lower(*five_layers()).compile())
    assert flops(plain) <= work[0] < work[1] <= everything


def flops(compiled: Any) -> float:
    return float(compiled.cost_analysis()["flops"])


@pytest.mark.slow
def test_budget_in_bytes_includes_arguments_and_results(plain: Any) -> None:
    analysis = plain.memory_analysis()
    around = analysis.argument_size_in_bytes + analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    readable = re.escape(readable_bytes(around))
    most = around + temporaries(plain) // 2
    lowered = recompute.jax.jit(STEP, budget=most).lower(*five_layers())
    assert temporaries(lowered.compile()) <= temporaries(plain) // 2
    with pytest.raises(Refusal, match=rf"1\.0 KiB of device memory\): arguments and results, .* need {readable}"):
        recompute.jax.jit(STEP, budget="1KiB").lower(*five_layers())


@pytest.mark.slow
def test_min_budget_needs_less_than_the_default(plain: Any) -> None:
    lowered = recompute.jax.jit(STEP, budget="min").lower(*five_layers())
    assert temporaries(lowered.compile()) < 0.4 * temporaries(plain)
    assert temporaries(lowered.compile()) <= temporaries(recompute.jax.jit(STEP).lower(*five_layers()).compile())


def test_min_budget_never_exceeds_choice_without_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget `min` needs no more than the choice without a budget, even if no candidate of the pool is compiled."""
    monkeypatch.setattr(budgets, "pool_of", lambda *_: Pool())
    lowered = recompute.jax.jit(STEP, budget="min").lower(weights(), batch())
    ordinary = recompute.jax.jit(STEP).lower(weights(), batch()).compile()
    assert temporaries(lowered.compile()) == temporaries(ordinary)
    assert lowered.within is not None
    assert [actual.words for actual in lowered.within.rounds] == ["as without a budget"]


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (0.6, r"{size} -> {size} of temporaries, within the budget of 0\.6"),
        ("400KiB", r"{size} -> {size} of temporaries; {size} with arguments and results, within the budget of 400KiB"),
        ("1GiB", r"{size} of temporaries; {size} with arguments and results, within the budget of 1GiB as it is"),
        ("min", r"{size} -> {size} of temporaries, the minimum that was found"),
        (None, r"{size} of temporaries, \d+ operations are recomputed"),
    ],
)
def test_last_line_of_progress_states_the_bytes_that_were_compared(
    budget: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="recompute.progress"):
        recompute.jax.jit(STEP, budget=budget)(weights(), batch())
    last = words.format(size=r"\d+\.\d [KM]iB")
    messages = [record.getMessage() for record in caplog.records]
    assert any(re.fullmatch(rf"recompute\.jax: step: {last} after .* s", message) for message in messages), messages


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


def test_budget_met_by_plain_step_gives_no_warning(plain: Any) -> None:
    step = recompute.jax.jit(STEP, budget="8GiB")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert far_apart(step(*five_layers()), plain(*five_layers())) == []
        lowered = step.lower(*five_layers())
    assert lowered.rewritten is None
    assert str(lowered.remarks[0]).startswith("no recomputation is needed: the plain step needs")
    assert temporaries(lowered.compile()) == temporaries(plain)


@pytest.mark.slow
def test_missed_budget_error_reports_smallest_attempt() -> None:
    with pytest.raises(Refusal) as refused:
        recompute.jax.jit(STEP, budget=0.05)(*five_layers())
    first, *rounds = refused.value.reason.splitlines()
    size = r"\d+\.\d [KM]iB"
    least = rf"the smallest compiled candidate needs {size} \(\d+ bytes\)"
    assert re.fullmatch(rf"no plan is within the budget 0\.05, {size} of {size} of temporaries: {least}", first)
    stated = re.search(size, first.partition("candidate needs ")[2])
    assert stated is not None and any(f"{stated[0]} by the compiler" in line for line in rounds)
    assert rounds and all(
        re.fullmatch(rf"  .*: ({size} predicted, )?{size} by .*(; \S+ FLOPs more|, above the budget)", line)
        for line in rounds
    )


@pytest.mark.slow
def test_device_budget_requires_memory_stats(monkeypatch: pytest.MonkeyPatch, plain: Any) -> None:
    step = recompute.jax.jit(STEP, budget="device")
    if not jax.local_devices()[0].memory_stats():
        with pytest.raises(Refusal, match='budget="device": cpu does not report its memory: give bytes or a share'):
            step(*five_layers())
    analysis = plain.memory_analysis()
    around = analysis.argument_size_in_bytes + analysis.output_size_in_bytes
    monkeypatch.setattr(device_limits, "free_bytes", lambda _: around + temporaries(plain) * 6 // 10)
    assert temporaries(step.lower(*five_layers()).compile()) <= 0.6 * temporaries(plain)


def test_device_budget_is_refused_before_anything_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_option, "reported_free_bytes", lambda: None)
    monkeypatch.setattr(device_limits, "reported_free_bytes", lambda: None)
    monkeypatch.setattr(jax.stages.Lowered, "compile", lambda *_: pytest.fail("something is compiled"))
    with pytest.raises(Refusal, match=r'budget="device": .* does not report its memory: give bytes or a share'):
        recompute.jax.jit(STEP, budget="device")(*five_layers())
    with pytest.raises(ValueError, match=r"or 'min'$"):
        recompute.jax.jit(STEP, budget="8 apples")
    monkeypatch.setattr(budget_option, "reported_free_bytes", lambda: 2**30)
    with pytest.raises(ValueError, match=r'; budget="device" stands for the free memory of the device$'):
        recompute.jax.jit(STEP, budget="8 apples")


@pytest.mark.slow
def test_report_lists_each_round(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "recompute")
    text = recompute.jax.jit(STEP, budget=0.5).report(*five_layers()).details()
    assert " predicted, " in text and "by the compiler, within the budget" in text
    assert f"step: 1 of {MAX_COMPILED + MAX_EXTRA_CANDIDATES + 1}: " in caplog.text


def test_refusal_lists_smallest_candidate_of_earlier_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = PlanOrigin(PlanSource.SOLVER)
    pool = Pool([ModuleCandidate((origin,), (), UNCUT, Prediction(0.5, 1.0, 1))])
    pool.unbudgeted["stub"] = 1500.0
    rewritten = SimpleNamespace(module=None, plans=(), copies=1, extra_flops=0)
    monkeypatch.setattr(budgets, "pool_of", lambda *_: pool)
    monkeypatch.setattr(budgets, "rewrite", lambda *_: rewritten)
    monkeypatch.setattr(budgets, "reported_bytes", lambda *_: 2000)
    compilers = budgets.Compilers(lambda: None, lambda *_: None, "stub")  # pyright: ignore[reportArgumentType]
    search = budgets._CompilerSearch(  # pyright: ignore[reportPrivateUsage]
        budgets._Request(  # pyright: ignore[reportPrivateUsage]
            name="step",
            module=parse_module(TRIVIAL, "step"),
            options=DEFAULT_OPTIONS,
            budget="1000",
            plain_bytes=2000,
            limit_bytes=1000,
            compilers=compilers,
            line=ProgressLine("step"),
            stop=never_stop,
        )
    )
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
    search = budgets._CompilerSearch(  # pyright: ignore[reportPrivateUsage]
        budgets._Request(  # pyright: ignore[reportPrivateUsage]
            name="step",
            module=parse_module(TRIVIAL, "step"),
            options=DEFAULT_OPTIONS,
            budget="1000",
            plain_bytes=2000,
            limit_bytes=1000,
            compilers=compilers,
            line=ProgressLine("step"),
            stop=lambda: True,
            time_limit=2,
        )
    )
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


@pytest.mark.parametrize("budget", ("1KiB", "100B"))
def test_budget_below_arguments_and_results_is_refused_before_anything_is_compiled(
    budget: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("the step is rewritten or compiled")

    monkeypatch.setattr(rewrite_within, "compile_within", fail)
    for call in (
        lambda: recompute.jax.jit(STEP, budget=budget).lower(*five_layers()),
        lambda: recompute.jax.jit(STEP, budget=budget)(*five_layers()),
        lambda: recompute.jax.jit(STEP, budget=budget).report(*five_layers()),
    ):
        with pytest.raises(
            Refusal,
            match=r"arguments and results, which no plan changes, need \d+\.\d KiB \(\d+ bytes\); "
            r'budget="min" finds the smallest budget that a plan can meet',
        ):
            call()


@pytest.mark.parametrize("donated", (None, 0))
def test_bytes_that_are_known_before_compilation_are_a_lower_bound(donated: int | None) -> None:
    lowered = jax.jit(STEP, donate_argnums=donated).lower(*five_layers())
    known = device_limits.least_fixed_bytes(module_of(lowered, "step"))
    measured = fixed_bytes(lowered.compile())
    assert known <= measured < 1.05 * known


@pytest.mark.slow
def test_budget_in_enclosing_trace_uses_memory_model() -> None:
    step = recompute.jax.jit(STEP, budget=0.6)
    with pytest.warns(BarriersDropped, match="which drops the barriers on CPU"):
        text = jax.jit(lambda *given: step(*given)).lower(*five_layers()).as_text()
    assert "optimization_barrier" in text
    with pytest.raises(ValueError, match="does not apply to a step inside another"):
        jax.jit(lambda *given: recompute.jax.jit(STEP, budget="device")(*given)).lower(*five_layers())


def accumulated(parameters: Any, batches: Any) -> Any:
    """Sum the gradients of several batches in a loop whose body is the step."""

    def add(total: Any, x: Any) -> Any:
        return jax.tree.map(lambda a, b: a + b, total, STEP(parameters, x)[1]), None

    return jax.lax.scan(add, jax.tree.map(lambda item: 0 * item, parameters), batches)[0]


@pytest.mark.slow("xla")
@pytest.mark.parametrize("model", ["order", "xla"])
def test_budget_covers_memory_around_a_loop(model: str) -> None:
    """The memory around a loop counts as part of the budget."""
    lowered = jax.jit(accumulated).lower(weights(5, 16, 64), batch(1024, 16).reshape(4, 256, 16))
    text = lowered.as_text(debug_info=True)
    result = recompute.rewrite(text, recompute.RecomputeOptions(budget="60%", memory_model=model))
    before, after = result.memory(model)["main"]
    assert result.copies and result.proof is not None and result.proof.proved
    assert after.peak_bytes <= 0.6 * before.peak_bytes
    with pytest.raises(Refusal, match="alone need .* bytes\\)" if model == "order" else "no plan is within the budget"):
        recompute.rewrite(text, recompute.RecomputeOptions(budget="1%", memory_model=model))


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"budget": "8 apples"}, ValueError, "invalid budget '8 apples'.*"),
        ({"budget": "-5MiB"}, ValueError, "invalid budget '-5MiB': a budget must be positive"),
        ({"budget": "150%"}, ValueError, "a share of the peak of the original step must be above 0 and at most 1"),
        ({"budget": 1.5}, ValueError, "invalid budget 1.5: "),
        ({"budget": 8}, ValueError, "budget=8 is a number of bytes; did you mean '8GiB'?"),
        ({"budget": True}, TypeError, "budget must be a str, a share \\(float\\) or bytes \\(int\\), not bool"),
        ({"budget": 0.5, "planner": lambda _: None}, ValueError, "give planner= or budget=, not both"),
        ({"budget": 0.5, "search": 3}, ValueError, "budget= and search= both select the values to recompute"),
    ],
)
def test_invalid_budget_options_are_rejected(options: dict[str, Any], error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        recompute.jax.jit(STEP, **options)


def test_segment_budgets_are_kept(plain: Any) -> None:
    """Independent code finds the budgets of segments kept, and the plain step is not chosen instead."""
    lowered = recompute.jax.jit(STEP, segment_budgets={"block*": 0.6}).lower(*five_layers())
    result, scopes = lowered.rewritten, [f"block{number}" for number in range(5)]
    assert result is not None and result.proof is not None and result.proof.proved and lowered.module is not None
    before, after = (saved_by_scope(flat_copy(item), scopes) for item in (lowered.module, result.module))
    assert all(0 < after[scope] <= 0.6 * before[scope] for scope in scopes)
    step = recompute.jax.jit(STEP, segment_budgets={"block*": 0.6})
    assert step.report(*five_layers()).why is None
    assert far_apart(step(*five_layers()), plain(*five_layers())) == []


def test_segment_budgets_that_raise_the_peak_are_warned_of() -> None:
    """The copies are made, since the user demands them, but the warning states the peaks and a remedy."""
    chain = build_chain("small")
    step = recompute.jax.jit(chain.function, segment_budgets={"*": 0.7})
    expected = (
        r"the copies for segment_budgets raise the peak from 4\.8 KiB \(4864 bytes\) to 5\.0 KiB \(5120 bytes\) "
        r"under the XLA:CPU model: .*; raise these budgets, or give the step a budget instead"
    )
    with pytest.warns(NothingSaved, match=expected):
        assert step.lower(*chain.arguments).rewritten is not None


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"segment_budgets": ["layer"]}, TypeError),
        ({"segment_budgets": {"layer": True}}, TypeError),
        ({"segment_budgets": {"layer": "30 apples"}}, ValueError),
        ({"segment_budgets": {"layer": "30%"}, "search": 2}, ValueError),
        ({"segment_budgets": {"layer": "30%"}, "planner": len}, ValueError),
    ],
)
def test_bad_segment_budget_is_rejected(wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="segment"):
        recompute.jax.jit(STEP, **wrong)


def test_errors_name_the_limit_that_has_a_wrong_type() -> None:
    list_as_limit: Any = {"layer*": [1]}
    number_as_pattern: Any = {3: "30%"}
    expected = r"segment_budgets: the limit of 'layer\*' must be a str, a share \(float\) or bytes \(int\), not list"
    with pytest.raises(TypeError, match=expected):
        recompute.jax.jit(STEP, segment_budgets=list_as_limit)
    with pytest.raises(TypeError, match="segment_budgets: a key must be a str, the pattern of segment names, not int"):
        recompute.jax.jit(STEP, segment_budgets=number_as_pattern)


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


@pytest.mark.parametrize("share", [0.6, "60%"])
def test_explain_finds_plan_within_budget(share: float | str) -> None:
    within = recompute.jax.jit(STEP, budget=share).report(*five_layers())
    explained = recompute.jax.explain(STEP, *five_layers(), budget=share)
    assert explained.search.limit_bytes is not None and explained.chosen.device_bytes is not None
    assert explained.chosen.device_bytes <= explained.search.limit_bytes < (explained.plain.device_bytes or 0)
    assert within.chosen.temporaries is not None and not explained.search.refused
    assert explained.fit is not None and explained.fit.fits and str(explained).startswith("fits: needs ")


@pytest.mark.parametrize("budget", ["8GiB", 0.9])
def test_explain_and_a_call_within_a_budget_are_about_the_same_step(budget: float | str) -> None:
    """The call and the report use the same step: the plain one if it fits, otherwise the rewritten one."""
    forget_pools()
    explained = recompute.jax.explain(STEP, *five_layers(), budget=budget)
    forget_pools()
    called = recompute.jax.jit(STEP, budget=budget)
    choice = called.lower(*five_layers()).compiled_step
    assert explained.variant is choice.variant is (Variant.PLAIN if budget == "8GiB" else Variant.RECOMPUTED)
    assert explained.chosen.temporaries == temporaries(choice.compiled)
    assert explained.chosen == called.report(*five_layers()).chosen
    if budget == "8GiB":
        text = str(explained)
        assert re.match(r"fits: the plain step needs \S+ \S+ of 8\.0 GiB on the device\n", text)
        assert 'next: a smaller budget, or "min", reduces memory' in text


def test_explain_reports_that_no_plan_fits() -> None:
    explained = recompute.jax.explain(STEP, *five_layers(), budget="1%")
    text = str(explained)
    assert "why: no plan is within the budget 1%" in text
    assert "the smallest compiled candidate needs" in " ".join(text.split())
    assert "by the compiler" not in text and "no plan is within the budget 1%" in explained.search.refused
    assert "fits in 1%" in text and explained.fit is not None and explained.fit.fits is False
    needed = r"does not fit: the smallest step found needs \S+ \S+, above the budget of \S+ \S+ on the device\n"
    assert re.match(needed, text)
    small = recompute.jax.explain(STEP, *five_layers(), budget="1KiB")
    assert "arguments and results" in small.search.refused
    assert str(small).startswith("does not fit: arguments and results alone need ")
    with pytest.raises(TypeError, match=r"recompute\.jax\.explain: budget must be a str"):
        recompute.jax.explain(STEP, *five_layers(), budget=True)


def test_explain_supports_the_min_budget() -> None:
    explained = recompute.jax.explain(STEP, *five_layers(), budget="min")
    assert explained.search.candidates and explained.chosen.temporaries is not None and "fits in" not in str(explained)
    assert explained.fit is not None and explained.fit.fits is None
    smallest = r"unknown: the smallest step found needs \S+ \S+ on the device, and the device reports no memory limit;"
    assert re.match(smallest, explained.fit.text) and str(explained).startswith("unknown: ")


@pytest.mark.parametrize(("limit", "fits"), [(1 << 30, True), (1, False)])
def test_explain_compares_the_smallest_step_with_the_device(
    limit: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recompute.frontends.jax.reports.compare_step.reported_total_bytes", lambda: limit)
    explained = recompute.jax.explain(STEP, *five_layers(), budget="min")
    assert explained.fit is not None and explained.fit.fits is fits
    assert str(explained).startswith("fits: " if fits else "does not fit: ")
    assert "fits in min" not in str(explained)


def checkpointed_blocks(parameters: Any, x: Any) -> Any:
    """Return a loss whose blocks are all recomputed by `jax.checkpoint`."""
    block = jax.checkpoint(lambda w, x: x + jax.nn.gelu(x @ w["up"]) @ w["down"])
    for w in parameters:
        x = block(w, x)
    return (x**2).mean()


@pytest.mark.parametrize("budget", [0.5, "min"])
def test_budget_merges_checkpoint_copies_of_the_step(budget: float | str) -> None:
    """The search starts from the step without its `jax.checkpoint`, which left nothing to recompute."""
    step, arguments = jax.value_and_grad(checkpointed_blocks), five_layers()
    plain = jax.jit(step).lower(*arguments).compile()
    lowered = recompute.jax.jit(step, budget=budget).lower(*arguments)
    assert lowered.rewritten is not None and lowered.rewritten.proof
    assert not far_apart(recompute.jax.jit(step, budget=budget)(*arguments), jax.jit(step)(*arguments))
    if isinstance(budget, float):
        assert temporaries(lowered.compile()) <= budget * temporaries(plain)
        least = recompute.jax.jit(step, budget="min").lower(*arguments).rewritten
        assert least is not None and lowered.rewritten.extra_flops < least.extra_flops


def test_the_minimum_never_exceeds_the_own_checkpoint_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step with its own `jax.checkpoint` is a candidate for `min`, even if the search finds only larger ones or
    none."""
    step, arguments = jax.value_and_grad(checkpointed_blocks), five_layers()
    ordinary = recompute.jax.jit(step).lower(*arguments)
    if not ordinary.drops_barriers:
        pytest.skip("XLA keeps the barriers of the plain step, which is a candidate of its own")
    keeping = temporaries(ordinary.compile_plain(keeps_barriers=True))

    def refused(self: Any) -> Any:
        raise budgets.BudgetNotReached(self.request.module, "a reason", None)

    for budget, best in (("min", None), ("min", refused), (0.9, refused)):
        with monkeypatch.context() as patch:
            if best is not None:
                patch.setattr(budgets, "_CompilerSearch", type("Search", (budgets._CompilerSearch,), {"best": best}))  # pyright: ignore[reportPrivateUsage]
            limited = recompute.jax.jit(step, budget=budget)
            choice = limited.lower(*arguments).compiled_step
            assert temporaries(choice.compiled) <= min(keeping, temporaries(ordinary.compiled_step.compiled))
            if best is not None:
                report = limited.report(*arguments)
                assert choice.variant is report.variant is Variant.KEEPING and report.chosen.temporaries == keeping
                assert "its own jax.checkpoint already recomputes" in str(report)
                candidates = [str(compiled).partition(":")[0] for compiled in report.search.candidates]
                assert candidates == [budgets.OWN_CHECKPOINT]


def test_refusal_states_smallest_candidate_of_all_variants() -> None:
    """If no candidate fits, merged or not, the error states the smallest of both variants."""
    step, arguments = jax.value_and_grad(checkpointed_blocks), five_layers()
    with pytest.raises(budgets.BudgetNotReached) as refused:
        recompute.jax.jit(step, budget=0.01).lower(*arguments)
    least = recompute.jax.jit(step, budget="min").lower(*arguments)
    assert refused.value.least_bytes is not None
    assert refused.value.least_bytes <= 1.05 * temporaries(least.compile())


def test_step_that_keeps_its_own_copies_gives_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no warning if the step runs with its own barriers, which save memory and which `jax.jit` would drop."""
    monkeypatch.setattr(Lowered, "drops_barriers", True)
    step = recompute.jax.jit(jax.value_and_grad(checkpointed_blocks))
    with warnings.catch_warnings():
        warnings.simplefilter("error", NothingSaved)
        chosen = step.report(*five_layers()).variant
        step(*five_layers())
    assert chosen in (Variant.KEEPING, Variant.MERGED)
