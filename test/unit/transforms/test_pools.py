"""The pool of plans of a step is made once, whatever the budgets, and again where anything else differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from recompute.analysis.request.selection import AUTO
from recompute.dialects.parser import parse_module
from recompute.driver.api import Request, rewrite
from recompute.rules.costs.cost import FLOPS
from recompute.rules.facts import pure
from recompute.rules.registry import register, registrations_undone
from recompute.test.unit.transforms.test_segment_budgets import STEP
from recompute.transforms.plans import pools
from recompute.transforms.plans.candidates import Search, candidates
from recompute.transforms.plans.carry_out import FOR_XLA
from recompute.transforms.plans.pools import forget_pools, pool_of

SEARCH = Search(AUTO, 2, FOR_XLA, True, FLOPS)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Search]:
    """What pools were made for."""
    found = list[Search]()

    def counted(module: object, search: Search) -> object:
        found.append(search)
        return candidates(module, search)  # pyright: ignore[reportArgumentType]

    forget_pools()
    monkeypatch.setattr(pools, "candidates", counted)
    return found


def test_several_budgets_on_a_step(made: list[Search]) -> None:
    texts = [rewrite(STEP, Request(budget=budget, memory_model="xla")).text for budget in ("95%", "85%")]
    assert len(made) == 1
    forget_pools()
    assert rewrite(STEP, Request(budget="85%", memory_model="xla")).text == texts[1]


def test_what_makes_another_pool(made: list[Search], tmp_path: Path) -> None:
    first = pool_of(parse_module(STEP, "one"), SEARCH)
    assert pool_of(parse_module(STEP, "one"), SEARCH) == first and len(made) == 1
    for other in (replace(SEARCH, copies=1), replace(SEARCH, loops=False)):
        pool_of(parse_module(STEP, "one"), other)
    pool_of(parse_module(STEP.replace("sine %x", "cosine %x"), "one"), SEARCH)
    assert len(made) == 4


def test_facts_that_are_declared_may_change(made: list[Search]) -> None:
    with registrations_undone():
        register("acme.swish", pure())
        text = STEP.replace(
            "stablehlo.sine %x : tensor<256xf32>", '"acme.swish"(%x) : (tensor<256xf32>) -> tensor<256xf32>'
        )
        for _ in range(2):
            pool_of(parse_module(text, "one"), SEARCH)
    assert len(made) == 2


def test_a_pool_that_was_cut_short_is_not_kept(made: list[Search]) -> None:
    for _ in range(2):
        pool_of(parse_module(STEP, "one"), replace(SEARCH, stop=lambda: True))
    assert len(made) == 2
