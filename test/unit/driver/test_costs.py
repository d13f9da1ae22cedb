"""Plans within budgets minimize the requested cost, and are proved equal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recompute.driver.api import explain, rewrite
from recompute.driver.rewrites.rewritten import Rewritten
from recompute.options.recompute_options import RecomputeOptions
from recompute.support.diagnostics import Refusal
from recompute.support.operations import every_operation

CHAIN = (Path(__file__).resolve().parents[3] / "examples" / "stablehlo" / "chain.small.mlir").read_text()


def within(cost: str) -> Rewritten:
    result = rewrite(CHAIN, RecomputeOptions(budget="60%", target="none", cost=cost))
    before, after = result.memory()["main"]
    assert result.proof is not None and result.proof.proved and after.peak_bytes <= 0.6 * before.peak_bytes
    return result


def copied(result: Rewritten) -> list[str]:
    return [op.name for op in every_operation(result.module) if "recompute.copy" in op.attributes]


def cost_remarks(result: Rewritten) -> list[str]:
    return [remark.reason for remark in result.remarks if remark.reason.startswith("extra cost by")]


@pytest.mark.parametrize("name", ["stablehlo.sine", "stablehlo.tanh", "stablehlo.cosine"])
def test_expensive_operation_is_not_recomputed(name: str, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps({"unit": "us", "operations": {name: 1000}, "otherwise": 1}))
    result = within(str(path))
    assert copied(result) and name not in copied(result)
    (output,) = cost_remarks(result)
    assert output.startswith(f"extra cost by {path}: {len(copied(result))} us, 0.")


def test_flops_cost_matches_default_and_adds_no_remark() -> None:
    assert copied(within("flops")) == copied(rewrite_plain()) and not cost_remarks(within("flops"))


def rewrite_plain() -> Rewritten:
    return rewrite(CHAIN, RecomputeOptions(budget="60%", target="none"))


def test_roofline_cost_is_reported_in_microseconds() -> None:
    (output,) = cost_remarks(within("roofline(h100)"))
    assert output.startswith("extra cost by roofline(h100): 0.003") and "us on h100, 12." in output


def test_without_a_budget_a_remark_states_the_cost() -> None:
    messages = [remark.reason for remark in rewrite(CHAIN, RecomputeOptions(cost="bytes")).remarks]
    assert sum(message.startswith("extra cost by bytes: ") for message in messages) == 1


def test_explanations_use_the_requested_cost() -> None:
    (plain,), (timed,) = explain(CHAIN), explain(CHAIN, cost="roofline(cpu)")
    assert plain.cost == "flops" and plain.step_cost == plain.step_flops
    assert [segment.extra_cost for segment in plain.segments] == [segment.extra_flops for segment in plain.segments]
    assert (timed.cost, timed.cost_unit) == ("roofline(cpu)", "us on cpu") and 0 < timed.step_cost < 1000
    assert timed.step_flops == plain.step_flops


def test_unknown_cost_is_rejected() -> None:
    with pytest.raises(Refusal, match="unknown cost 'time'; expected one of flops, bytes, roofline"):
        rewrite(CHAIN, RecomputeOptions(cost="time"))
    with pytest.raises(Refusal, match="unknown cost 'time'"):
        explain(CHAIN, cost="time")


def test_operation_without_cost_is_rejected_at_location(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps({"operations": {"stablehlo.sine": 1}}))
    with pytest.raises(Refusal) as refused:
        rewrite(CHAIN, RecomputeOptions(budget="60%", cost=str(path)))
    assert refused.value.operation.name == "stablehlo.cosine" and "has no cost for stablehlo.cosine" in str(
        refused.value
    )
