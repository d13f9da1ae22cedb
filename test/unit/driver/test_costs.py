"""Plans under budgets by cost model: they minimize the requested cost, differ between costs, and are proved equal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recompute.driver.api import Rewritten, explain, rewrite
from recompute.options.recompute_options import RecomputeOptions
from recompute.support.diagnostics import Refusal
from recompute.support.operations import every_operation

CHAIN = (Path(__file__).resolve().parents[3] / "examples" / "stablehlo" / "chain.small.mlir").read_text()


def within(cost: str) -> Rewritten:
    done = rewrite(CHAIN, RecomputeOptions(budget="60%", target="none", cost=cost))
    before, after = done.memory()["main"]
    assert done.proof is not None and done.proof.proved and after.peak_bytes <= 0.6 * before.peak_bytes
    return done


def copied(done: Rewritten) -> list[str]:
    return [op.name for op in every_operation(done.module) if "recompute.copy" in op.attributes]


def said_of_costs(done: Rewritten) -> list[str]:
    return [one.reason for one in done.remarks if one.reason.startswith("cost by")]


@pytest.mark.parametrize("name", ["stablehlo.sine", "stablehlo.tanh", "stablehlo.cosine"])
def test_what_is_dear_is_not_computed_again(name: str, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps({"unit": "us", "operations": {name: 1000}, "otherwise": 1}))
    done = within(str(path))
    assert copied(done) and name not in copied(done)
    (said,) = said_of_costs(done)
    assert said.startswith(f"cost by {path}: {len(copied(done))} us again, 0.")


def test_flops_are_what_a_budget_kept_low_before_and_say_nothing() -> None:
    assert copied(within("flops")) == copied(rewrite_plain()) and not said_of_costs(within("flops"))


def rewrite_plain() -> Rewritten:
    return rewrite(CHAIN, RecomputeOptions(budget="60%", target="none"))


def test_a_roofline_is_told_in_microseconds() -> None:
    (said,) = said_of_costs(within("roofline(h100)"))
    assert said.startswith("cost by roofline(h100): 0.003") and "us on h100 again, 12." in said


def test_without_a_budget_remarks_tell_the_cost() -> None:
    said = [one.reason for one in rewrite(CHAIN, RecomputeOptions(cost="bytes")).remarks]
    assert sum(one.startswith("cost by bytes: ") for one in said) == 1


def test_explanations_count_in_the_cost() -> None:
    (plain,), (timed,) = explain(CHAIN), explain(CHAIN, cost="roofline(cpu)")
    assert plain.cost == "flops" and plain.step_cost == plain.step_flops
    assert [one.extra_cost for one in plain.segments] == [one.extra_flops for one in plain.segments]
    assert (timed.cost, timed.cost_unit) == ("roofline(cpu)", "us on cpu") and 0 < timed.step_cost < 1000
    assert timed.step_flops == plain.step_flops


def test_an_unknown_cost_is_refused() -> None:
    with pytest.raises(Refusal, match="unknown cost 'time'; expected one of flops, bytes, roofline"):
        rewrite(CHAIN, RecomputeOptions(cost="time"))
    with pytest.raises(Refusal, match="unknown cost 'time'"):
        explain(CHAIN, cost="time")


def test_an_operation_without_a_cost_is_refused_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps({"operations": {"stablehlo.sine": 1}}))
    with pytest.raises(Refusal) as refused:
        rewrite(CHAIN, RecomputeOptions(budget="60%", cost=str(path)))
    assert refused.value.operation.name == "stablehlo.cosine" and "has no cost for stablehlo.cosine" in str(
        refused.value
    )
