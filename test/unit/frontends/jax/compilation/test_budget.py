"""Budgets with the real compiler: shares, bytes and `min` are met by its own count, with equal results, or refused."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation import budgeted as budgets
from recompute.frontends.jax.compilation.budgeted import MAX_COMPILED
from recompute.frontends.jax.messages.call_site_warnings import BarriersDropped
from recompute.search.budget.rounds import MAX_EXTRA_CANDIDATES
from recompute.search.candidate_plans.pool import Pool
from recompute.support.diagnostics import Refusal
from recompute.test.unit.frontends.jax.five_layers import STEP, five_layers
from recompute.test.unit.frontends.jax.steps import batch, far_apart, jax, temporaries, weights


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
    most = around + temporaries(plain) // 2
    lowered = recompute.jax.jit(STEP, budget=most).lower(*five_layers())
    assert temporaries(lowered.compile()) <= temporaries(plain) // 2
    with pytest.raises(Refusal, match=r"1\.0 KiB of device memory\): arguments and results, .* need 112") as refusal:
        recompute.jax.jit(STEP, budget="1KiB").lower(*five_layers())
    # The refusal precedes the compilation. XLA adds a pointer to each result.
    stated = re.search(r"need .* \((\d+) bytes\)", str(refusal.value))
    assert stated is not None and around - 8 * 12 <= int(stated[1]) <= around


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
def test_report_lists_each_round(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "recompute")
    text = recompute.jax.jit(STEP, budget=0.5).report(*five_layers()).details()
    assert " predicted, " in text and "by the compiler, within the budget" in text
    assert f"step: 1 of {MAX_COMPILED + MAX_EXTRA_CANDIDATES + 1}: " in caplog.text


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
