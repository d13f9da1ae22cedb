"""The runner gives each script of the corpus a verdict, and the scripts meet its requirements."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the scripts are of PyTorch")

from recompute.benchmarks.torch.scripts import judge as judging  # noqa: E402
from recompute.benchmarks.torch.scripts.all_scripts import scripts  # noqa: E402
from recompute.benchmarks.torch.scripts.judge import Ours, ScriptVerdict, judge  # noqa: E402
from recompute.benchmarks.torch.scripts.script import Script, batches, final, mlp, train  # noqa: E402


def verdict(eager: Any, ours: Any, theirs: Any) -> ScriptVerdict:
    """Return the verdict on a script with these bodies for the three ways to compile it."""

    def body(compile: Any) -> dict[str, Any]:
        result = eager if compile is judging.eager else ours if isinstance(compile, Ours) else theirs
        if isinstance(result, Exception):
            raise result
        return {"x": torch.tensor(result)}

    return judge(Script("made", body), "min").verdict


@pytest.mark.parametrize(
    ("eager", "ours", "theirs", "expected"),
    [
        (1.0, 1.0, 1.0, ScriptVerdict.EQUAL),
        (1.0, 2.0, 2.0, ScriptVerdict.AS_TORCH),
        (1.0, 2.0, 1.0, ScriptVerdict.WRONG),
        (1.0, 2.0, ValueError("x"), ScriptVerdict.WRONG),
        (1.0, KeyError("x"), 1.0, ScriptVerdict.CRASH),
        (1.0, KeyError("x"), ValueError("x"), ScriptVerdict.CRASH),
        (1.0, ValueError("x"), ValueError("x"), ScriptVerdict.ERROR_AS_TORCH),
        (1.0, RuntimeError("raised: BudgetNotKept: no plan"), 1.0, ScriptVerdict.REFUSED),
        (1.0, RuntimeError("backend='ours' raised:\nBudgetNotKept: no plan"), 1.0, ScriptVerdict.REFUSED),
        (ValueError("x"), 1.0, 1.0, ScriptVerdict.BROKEN),
    ],
)
def test_verdict_compares_eager_ours_and_theirs(eager: Any, ours: Any, theirs: Any, expected: ScriptVerdict):
    assert verdict(eager, ours, theirs) is expected
    assert expected.is_fault == (expected in (ScriptVerdict.WRONG, ScriptVerdict.CRASH))


def test_a_negative_zero_is_a_difference():
    assert verdict(0.0, -0.0, 0.0) is ScriptVerdict.WRONG


def test_each_script_states_its_purpose():
    assert len(scripts()) > 50
    assert all(script.purpose.endswith(".") for script in scripts().values())


@pytest.mark.parametrize("name", ["plain_loop", "mutated_buffers", "random_operations", "checkpoint_inside"])
def test_eager_runs_are_repeatable(name: str):
    first, second = (judging.attempt(scripts()[name], judging.eager) for _ in range(2))
    assert first.error is None and first.results is not None and second.results is not None
    assert judging.Outcome(first.results).differences(judging.Outcome(second.results)) == []
    assert any(key.startswith("grad ") for key in first.results)


def test_complex_arguments_are_planned():
    """A graph with the argument `1j` is planned."""
    judgement = judge(scripts()["complex_phases"], "70%")
    assert judgement.verdict is ScriptVerdict.EQUAL and judgement.detail.startswith("1 graphs, ")
    assert "0 copies" not in judgement.detail


def test_training_lowers_the_loss():
    torch.manual_seed(0)
    model, (batch,) = mlp(dropout=0.0), batches(1, 64, 32)
    losses = train(model, lambda x: (model(x) - x).square().mean(), [batch] * 20)
    assert losses[-1] < losses[0]
    assert "random state" in final(model, losses)
