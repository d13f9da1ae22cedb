"""Plans as keys of sets and dictionaries."""

from __future__ import annotations

from dataclasses import replace

from recompute.planning.plan import Batch, CopyGroup, NotRecomputed, Plan

GROUP = CopyGroup("block0", 7, (Batch((1, 2), (0,)),), (1, 1), (2,), (6,))


def test_equal_plans_are_one_key() -> None:
    plan, equal = Plan((GROUP,)), Plan((replace(GROUP),))
    assert plan is not equal
    assert {plan: "a value"}[equal] == "a value"


def test_plans_with_equal_copies_may_be_different_keys() -> None:
    plan = Plan((GROUP,))
    others = [
        Plan((replace(GROUP, gates=(5,)),)),
        Plan((replace(GROUP, segment="block1"),)),
        Plan((GROUP,), (NotRecomputed("block1", 3, "it saves nothing"),)),
    ]
    assert {hash(other) for other in others} == {hash(plan)}
    assert len({plan, *others}) == 4


def test_plans_with_other_copies_have_other_hashes() -> None:
    assert len({hash(Plan((replace(GROUP, before=before),))) for before in range(8)}) == 8
