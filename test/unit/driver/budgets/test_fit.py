"""Python API of "will it fit": the command's answer as data, bounds for cut loops, and early stops."""

from __future__ import annotations

from collections import OrderedDict
from importlib import import_module
from typing import Any

import pytest

import recompute
from recompute.driver.budgets.fit import Verdict
from recompute.support.diagnostics import Refusal
from recompute.test.examples import original
from recompute.test.unit.tools.plan.test_planned_step import KIB, STEP

# `recompute.driver.budgets.fit` is also the name of a function.
fit_module: Any = import_module("recompute.driver.budgets.fit")


def test_fit_answers_yes_recomputed_or_no() -> None:
    plain = recompute.fit(STEP, "32KiB")
    assert plain.fits and plain.verdict is Verdict.AS_IT_IS and plain.extra_percent == 0
    again = recompute.fit(STEP, 28 * KIB)
    assert again.fits and again.verdict is Verdict.RECOMPUTED and again.copies == 1
    assert again.extra_percent == pytest.approx(again.bound_percent, abs=1e-4) == pytest.approx(11.1099, abs=1e-4)
    assert again.peaks["step"] == 16 * KIB and again.finished and again.loops is None
    no = recompute.fit(STEP, "23KiB")
    assert not no.fits and no.minimum_bytes == 24 * KIB and no.peaks == {}
    assert no.lower_bound is not None and no.lower_bound.operation == "stablehlo.multiply %g (m.py:7:4)"
    assert recompute.fit(STEP, 0.5).fits is False


def test_repeated_question_solves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second question with the same step, budget and effort gets the stored answer; another budget does not."""
    solved, original_solve = list[int](), fit_module.solve

    def counted(*arguments: Any, **keywords: Any) -> Any:
        solved.append(arguments[1])
        return original_solve(*arguments, **keywords)

    monkeypatch.setattr(fit_module, "solve", counted)
    monkeypatch.setattr(fit_module, "_ANSWERS", OrderedDict[str, Any]())
    first = recompute.fit(STEP, "28KiB")
    solves = len(solved)
    assert solves and recompute.fit(STEP, "28KiB") is first and len(solved) == solves
    assert recompute.fit(STEP, "29KiB") is not first and len(solved) > solves
    assert recompute.fit(STEP, "28KiB", stop=lambda: False) is not first


def test_fit_prints_the_sentence_of_the_command_line_and_the_memory_model() -> None:
    first, needs, again = str(recompute.fit(STEP, "28KiB")).splitlines()
    assert first.startswith("yes, with recomputation: the step fits in 28KiB at 11.")
    assert needs.startswith("  @step needs 28.0 KiB of device memory in program order: temporaries")
    assert again == "  1 operation is recomputed"
    assert str(recompute.fit(STEP, "23KiB")).startswith(
        "no: the step does not fit in 23KiB: the proven minimum is 24.0 KiB"
    )
    assert "of device memory by the XLA:CPU model: " in str(recompute.fit(STEP, "95%", model="xla"))


def test_bytes_are_exact_if_rounding_hides_that_they_exceed_the_budget() -> None:
    """A step that needs 4 bytes more than its budget of 24 KiB."""
    limit = 24 * KIB - 4
    first, _, needs, minimum, *_ = str(recompute.fit(STEP, f"{limit}B")).splitlines()
    assert first == (
        f"no: the step does not fit in {limit}B: the proven minimum is 24.0 KiB (24576 bytes) of device memory, "
        "12.0 KiB (12288 bytes) of temporaries, in program order"
    )
    assert needs.startswith("  @step needs 32.0 KiB of device memory in program order: temporaries 20.0 KiB, ")
    assert "the proven minimum of temporaries in program order, 12.0 KiB (12288 bytes), is determined by" in minimum


def test_minimum_is_proved_for_any_budget_in_order_only() -> None:
    assert recompute.fit(STEP, "1GiB").minimum_bytes == recompute.fit(STEP, "1KiB").minimum_bytes == 24 * KIB
    by_model = recompute.fit(STEP, "95%", model="xla")
    assert by_model.minimum_bytes is None and by_model.bound_percent is None


def test_invalid_budget_or_step_is_rejected() -> None:
    with pytest.raises(ValueError, match="invalid budget 'min'"):
        recompute.fit(STEP, "min")
    with pytest.raises(ValueError, match="invalid budget"):
        recompute.fit(STEP, "8 apples")
    with pytest.raises(Refusal, match="no gradient found"):
        recompute.fit("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }", "50%")


@pytest.mark.slow("mlp")
@pytest.mark.parametrize("name", ["mlp.small.mlir"])
def test_stopped_fit_returns_the_best_plan_so_far(name: str) -> None:
    whole = recompute.fit(original(name), "60%")
    stopped = recompute.fit(original(name), "60%", stop=lambda: True)
    assert whole.finished and whole.fits and whole.bound_percent is not None
    assert not stopped.finished and (stopped.fits or stopped.reason)
    if stopped.fits:
        assert stopped.extra_percent >= whole.bound_percent
        assert all(stopped.peaks[first] <= most for first, most in stopped.limits.items())


def test_step_with_cut_loops_has_a_bound(scanned: str) -> None:
    """The bound equals the bound of the step with its loops cut as reported."""
    result = recompute.fit(scanned, "60%")
    assert result.verdict is Verdict.RECOMPUTED and isinstance(result.loops, str | bool)
    assert result.bound_percent is not None and 0 < result.bound_percent <= result.extra_percent


ATTRIBUTES = "module attributes {{mhlo.num_partitions = {} : i32}} {{\n{}\n}}"
MESH = 'sdy.mesh @mesh = <["data"=2]>\n'
SHARDED_ARGUMENT = '{sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}'
COMPILING = "recompute.jax.jit(step, budget='23KiB') compiles the step and measures its memory"


def sharded_argument() -> str:
    """Return the step with a sharded argument, without the number of partitions."""
    return MESH + STEP.replace("%x: tensor<1024xf32>", f"%x: tensor<1024xf32> {SHARDED_ARGUMENT}", 1)


@pytest.mark.parametrize(("step", "count"), [(ATTRIBUTES.format(8, STEP), 8), (sharded_argument(), 2)])
def test_whole_arrays_of_several_devices_prove_no_refusal(step: str, count: int) -> None:
    for budget, reason in (
        ("23KiB", "no plan is within the budget of 23KiB (11.0 KiB of "),
        ("10KiB", "arguments and results of @step"),
    ):
        answer = recompute.fit(step, budget)
        assert answer.verdict is Verdict.NOT_FOUND and answer.devices == count and answer.minimum_bytes is None
        first, second, *_, last = str(answer).splitlines()
        assert first.startswith(f"unknown: no plan was found with which the step fits in {budget}")
        assert "counting whole arrays: " in second and reason in second
        assert f"but the shards on each of {count} devices need less: recompute.jax.jit(" in last
    for budget in ("32KiB", "28KiB"):
        answer = recompute.fit(step, budget)
        assert answer.fits and answer.bound_percent is None
        assert f"whole arrays; the shards on each of {count} devices need at most as much" in str(answer)


def test_mesh_without_sharded_arguments_is_one_device() -> None:
    assert recompute.fit(MESH + STEP, "23KiB").verdict is Verdict.NO
    assert recompute.fit(sharded_argument().replace('"data"=2', '"data"=1'), "23KiB").verdict is Verdict.NO


@pytest.mark.parametrize(("budget", "first"), [("28KiB", "yes, with recomputation: "), ("1MiB", "yes, as it is: ")])
def test_yes_for_a_step_of_jax_leaves_the_decision_to_the_compiler(budget: str, first: str) -> None:
    """The compiled step may need more than program order counts, so that a call refuses the budget."""
    of_jax = str(recompute.fit(ATTRIBUTES.format(1, STEP), budget))
    assert of_jax.startswith(f"{first}in program order, the step fits in {budget}")
    assert f"recompute.jax.explain(step, *arguments, budget='{budget}') compiles it" in of_jax
    assert "recompute.jax.explain" not in str(recompute.fit(STEP, budget))


def test_bound_within_the_error_of_program_order_is_unknown_for_a_step_of_jax() -> None:
    """The minimum of temporaries is 12 KiB: 11 KiB and 3 KiB are within a factor of 5.3, but 1 KiB is not."""
    step = ATTRIBUTES.format(1, STEP)
    assert recompute.fit(step, "15KiB").verdict is Verdict.NOT_FOUND
    assert recompute.fit(step, "13KiB").verdict is recompute.fit(step, "10KiB").verdict is Verdict.NO
    answer = recompute.fit(step, "23KiB")
    assert answer.verdict is Verdict.NOT_FOUND and answer.minimum_bytes == 24 * KIB
    first, reason, advice, *others = str(answer).splitlines()
    assert first == (
        "unknown: the step does not fit in 23KiB in program order, "
        "but a compiler that reorders or fuses operations may need less"
    )
    assert reason == "  no plan needs less than 12.0 KiB (12288 bytes) of temporaries in program order"
    assert advice == f"  {COMPILING}"
    assert answer.smallest_peaks == {"step": 12 * KIB}
    assert (
        "  with the smallest plan found, @step needs 24.0 KiB of device memory in program order: temporaries 12.0 KiB; "
        "at least 24.0 KiB is proved to be needed"
    ) in others
    assert "  the proven minimum of temporaries in program order, 12.0 KiB, is determined by" in others


def test_unknown_answer_states_the_smallest_plan_found() -> None:
    step = original("mlp.small.mlir")
    answer = recompute.fit(step, "55%")
    assert answer.verdict is Verdict.NOT_FOUND and answer.lower_bound is not None
    assert answer.lower_bound.bytes <= answer.limits["main"] < answer.smallest_peaks["main"] < answer.plain["main"]
    smallest = recompute.rewrite(step, budget="min", memory_model="order")
    assert answer.smallest_peaks["main"] == smallest.memory()["main"][1].peak_bytes
    stopped = recompute.fit(step, "55%", stop=lambda: True)
    assert not stopped.smallest_peaks and "smallest plan" not in str(stopped)


def test_refusal_with_loops_states_which_rewrite_it_describes(scanned: str) -> None:
    answer = recompute.fit(scanned, "1%")
    assert answer.verdict is Verdict.NOT_FOUND
    several = "the loops can be rewritten in several ways, and no minimum is proved for all of them"
    assert answer.reason.startswith(f"{several}; the last way that was tried: no plan is within the budget of 1% (")


@pytest.fixture(scope="module")
def scanned() -> str:
    jax: Any = pytest.importorskip("jax")
    jnp = jax.numpy

    def loss(w: Any, x: Any) -> Any:
        def body(h: Any, w: Any) -> tuple[Any, None]:
            a = jnp.tanh(h @ w)
            return h + jnp.sin(a) * jnp.exp(-a), None

        h, _ = jax.lax.scan(body, x, w)
        return jnp.sum(jnp.cos(h) * h)

    weights, batch = jnp.ones((8, 16, 16)), jnp.ones((64, 16))
    return str(jax.jit(jax.value_and_grad(loss)).lower(weights, batch).as_text(debug_info=True))
