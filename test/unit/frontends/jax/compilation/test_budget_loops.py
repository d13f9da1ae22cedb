"""One budget over loops and the operations around them, with the stacks that loops keep as a further choice."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import recompute
from recompute.search.candidate_plans.pool_cache import forget_pools
from recompute.support.diagnostics import Refusal

pytest.importorskip("jax")

from recompute.test.unit.frontends.jax.steps import far_apart, jax, jnp, temporaries

pytestmark = pytest.mark.slow

LAYERS, WIDTH, ROWS = 6, 32, 256


def layer(x: Any, weights: Any) -> tuple[Any, None]:
    return x + jnp.tanh(jnp.sin(x @ weights["in"])) @ weights["out"], None


def loss(weights: Any, x: Any) -> Any:
    """Scan over layers, followed by unrolled layers."""
    x, _ = jax.lax.scan(layer, x, weights)
    for _ in range(2):
        x = jnp.tanh(x @ weights["in"][0]) @ weights["out"][0]
    return (x**2).mean()


STEP = jax.value_and_grad(loss)


@cache
def given() -> tuple[Any, Any]:
    keys = jax.random.split(jax.random.key(0), 3)
    weights = {
        "in": jax.random.normal(keys[0], (LAYERS, WIDTH, 4 * WIDTH)) / 6,
        "out": jax.random.normal(keys[1], (LAYERS, 4 * WIDTH, WIDTH)) / 12,
    }
    return weights, jax.random.normal(keys[2], (ROWS, WIDTH))


@cache
def plain() -> Any:
    return jax.jit(STEP).lower(*given()).compile()


@cache
def lowered_within(share: float) -> Any:
    return recompute.jax.jit(STEP, budget=share).lower(*given())


SHARES = (0.85, 0.6, 0.4, 0.25)


@pytest.mark.slow("0.85", "0.25", "0.6")
@pytest.mark.parametrize("share", SHARES)
def test_jit_keeps_a_budget_over_loops(share: float) -> None:
    lowered = lowered_within(share)
    compiled = lowered.compile()
    assert temporaries(compiled) <= share * temporaries(plain())
    assert lowered.rewritten.proof.proved and lowered.rewritten.proof.tier == 2
    assert far_apart(compiled(*given()), plain()(*given())) == []


@pytest.mark.slow
def test_larger_budget_needs_no_more_work() -> None:
    work = []
    for share in SHARES:
        lowered_within(share).compile()
        work.append(lowered_within(share).rewritten.extra_flops)
    assert work == sorted(work) and 5 * work[0] < work[-1]


@cache
def text() -> str:
    return jax.jit(STEP).lower(*given()).as_text(debug_info=True)


@pytest.mark.slow("order")
@pytest.mark.parametrize("model", ["order", "xla"])
def test_memory_models_keep_a_budget_over_loops(model: str) -> None:
    rewrites = [
        recompute.rewrite(text(), recompute.RecomputeOptions(budget=share, memory_model=model))
        for share in ("80%", "50%", "30%")
    ]
    assert all(entry.proof is not None and entry.proof.tier == 2 for entry in rewrites)
    work = [entry.extra_flops for entry in rewrites]
    assert work == sorted(work) and 0 < work[0] < work[-1]
    assert any('with loops="keep(' in str(remark) for entry in rewrites for remark in entry.remarks)


def test_min_budget_states_how_loops_are_cut() -> None:
    with pytest.raises(
        Refusal,
        match=r"no plan needs less than .* bytes\)?, which .* for loops=\"periodic\(auto\)\", and",
    ):
        recompute.rewrite(text(), recompute.RecomputeOptions(budget="2%", memory_model="order"))


def test_keeping_fewer_stacks_needs_less_memory() -> None:
    """XLA's temporaries fall with the share of the stacks that is kept."""
    matches = [temporaries(plain())]
    for loops in ("keep(60%)", "keep(30%)", True):
        matches.append(temporaries(recompute.jax.jit(STEP, loops=loops).lower(*given()).compile()))
    assert matches == sorted(matches, reverse=True) and len(set(matches)) == 3


def test_invalid_loop_options_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"keep\(50%\), keep\(2GiB\), .* not 'keep\(much\)'"):
        recompute.jax.jit(STEP, loops="keep(much)")


def test_refusals_of_one_step_state_the_same_minimum() -> None:
    """The stated minimum includes the measurements of earlier searches."""

    def step(weights: Any, batches: Any) -> Any:
        def accumulate(total: Any, x: Any) -> tuple[Any, None]:
            _, gradient = jax.value_and_grad(in_layers)(weights, x)
            return jax.tree.map(jnp.add, total, gradient), None

        return jax.lax.scan(accumulate, jax.tree.map(jnp.zeros_like, weights), batches)[0]

    def in_layers(weights: Any, x: Any) -> Any:
        return (jax.lax.scan(layer, x, weights)[0] ** 2).mean()

    forget_pools()
    weights, batch = given()
    reasons = list[str]()
    for _ in range(3):
        with pytest.raises(Refusal) as refused:
            recompute.jax.jit(step, budget=0.01).lower(weights, jnp.stack([batch] * 2))
        reasons.append(refused.value.reason.splitlines()[0])
    assert "the smallest compiled candidate needs" in reasons[0] and reasons == reasons[:1] * 3
