"""The choice of the values to move to the host. The rewrites are given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recompute.options.offload_option import parse_offload
from recompute.planning.host_moves import NOTHING_MOVED, Moves, Offload
from recompute.rules.costs.cost import FLOPS
from recompute.search.budget.move_choices import cheapest_moves, require_order_model
from recompute.search.limits import Budget
from recompute.search.outcome import RewriteResult
from recompute.support.diagnostics import Refusal
from recompute.support.interface import command_line
from recompute.support.remarks import RemarkKind
from recompute.test.given_rewrites import rewrite_of, step_of

MARKED, AT_SPEED = parse_offload("marked", FLOPS), parse_offload("25GB/s", "roofline(h100)")


class Within:
    """Stands for the search within the budget. It returns a rewrite for each set of offered values."""

    def __init__(self, *rewrites: RewriteResult | None):
        self.rewrites = list(rewrites)
        self.offers = list[Offload]()

    def __call__(self, offload: Offload) -> RewriteResult:
        self.offers.append(offload)
        rewrite = self.rewrites[len(self.offers) - 1] if len(self.offers) <= len(self.rewrites) else None
        if rewrite is None:
            raise Refusal(step_of(3), f"no plan for set {len(self.offers)}")
        return rewrite


def moving(cost: int, values: int = 1) -> RewriteResult:
    """Return a rewrite that moves values, with this extra cost."""
    rewrite = rewrite_of(9, flops=cost)
    return replace(rewrite, outcome=replace(rewrite.outcome, moves=Moves(values)))


def chosen(within: Within, offload: Offload) -> tuple[RewriteResult, list[str]]:
    result = cheapest_moves(step_of(20), within, offload)
    return result, [remark.reason for remark in result.outcome.remarks]


def test_only_marked_values_are_moved_without_a_speed() -> None:
    within = Within(moving(5))
    _, remarks = chosen(within, MARKED)
    assert within.offers == [MARKED] and remarks == []


def test_cheapest_set_of_values_is_moved() -> None:
    assert len(AT_SPEED.variants()) >= 2
    within = Within(moving(9, 0), moving(4, 2), moving(7, 3))
    result, (remark,) = chosen(within, AT_SPEED)
    assert result.outcome.extra_cost == 4 and within.offers[:3] == [AT_SPEED, *AT_SPEED.variants()][:3]
    assert remark.startswith("2 values are kept on the host until their gradient operations run, at an extra cost of 4")
    assert "; without moves, the extra cost is 9" in remark
    assert result.outcome.remarks[0].kind is RemarkKind.ANALYSIS


def test_of_equal_costs_fewer_moves_are_preferred() -> None:
    result, _ = chosen(Within(moving(4, 1), moving(4, 2)), AT_SPEED)
    assert result.outcome.moves.values == 1


def test_search_ends_at_a_result_without_extra_cost() -> None:
    within = Within(moving(9), moving(0, 2), moving(0, 3))
    result, (remark,) = chosen(within, AT_SPEED)
    assert len(within.offers) == 2 and result.outcome.moves.values == 2
    assert "with only the marked values moved, the extra cost is 9" in remark


def test_larger_set_may_meet_a_budget_that_is_refused_without_it() -> None:
    result, (remark,) = chosen(Within(None, moving(4)), AT_SPEED)
    assert result.outcome.extra_cost == 4
    assert remark.startswith("1 value is kept on the host until its gradient operations run")
    assert remark.endswith("; with only the marked values moved, no plan was found")


def test_recomputation_may_cost_less_than_moves() -> None:
    _, (remark,) = chosen(Within(moving(4, 0), moving(9, 1)), AT_SPEED)
    assert remark == "nothing is moved to the host: recomputing values costs less"


def test_first_refusal_is_raised_if_no_set_meets_the_budget() -> None:
    within = Within()
    with pytest.raises(Refusal, match="no plan for set 1"):
        chosen(within, AT_SPEED)
    assert len(within.offers) == 1 + len(AT_SPEED.variants())


@pytest.mark.parametrize(
    ("offload", "model", "is_refused"), [(MARKED, "xla", True), (MARKED, "order", False), (NOTHING_MOVED, "xla", False)]
)
def test_moves_need_program_order(offload: Offload, model: str, is_refused: bool) -> None:
    if not is_refused:
        require_order_model(step_of(3), offload, Budget("50%", model))
        return
    with command_line(), pytest.raises(Refusal, match="use memory-model=order"):
        require_order_model(step_of(3), offload, Budget("50%", model))
