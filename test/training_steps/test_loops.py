"""Loops over layers: the backward loop recomputes what it reads from the smallest set of stacks, proved equal."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import pytest

import recompute
from recompute.analysis.explain.loop_rows import LoopRow

pytest.importorskip("jax")

from recompute.test.training_steps.loop_cases import (
    LAYERS,
    LOSSES,
    ROWS,
    WIDTH,
    arguments,
    layers,
    step_of,
)
from recompute.test.unit.frontends.jax.steps import far_apart, jax, jnp, temporaries

KEEPING = {"xla_disable_hlo_passes": "cse_barrier_expander"}
"""As `recompute.jax.jit` compiles."""

AS_CHECKPOINT = {
    "in_one_another": 1.08,
    "in_two_types": 1.24,
    "unrolled": 1.06,
    "large_carry": 0.4,
}
"""XLA's temporaries over those with `jax.checkpoint` around the body; 1.03 of those that are not named. Above it:
loops in one another keep one buffer more; XLA:CPU has no bf16, and widens the stack of what is kept in it; a body
unrolled four times is repeated as a whole, and `jax.checkpoint` repeats its parts."""


def plainly(function: Any) -> Any:
    return function


@pytest.mark.slow(
    "with_keys", "with_condition", "in_one_another", "counted", "one_after", "unrolled", "several_outputs"
)
@pytest.mark.parametrize("name", [*LOSSES, "accumulated"])
def test_loop_needs_no_more_than_checkpoint_around_the_body(name: str):
    given = arguments()
    lowered = recompute.jax.jit(step_of(name, plainly), measure=False).lower(*given)
    assert lowered.why is None and lowered.rewritten is not None
    assert lowered.rewritten.proof is not None and lowered.rewritten.proof.tier == 2
    less, plain = lowered.compile(), lowered.compile_plain()
    theirs = jax.jit(step_of(name, jax.checkpoint)).lower(*given)
    bar = min(temporaries(theirs.compile()), temporaries(theirs.compile(compiler_options=KEEPING)))
    assert temporaries(less) <= AS_CHECKPOINT.get(name, 1.03) * bar
    assert temporaries(less) < 0.45 * temporaries(plain)
    assert not far_apart(less(*given), plain(*given))


def test_loop_needs_no_more_flops_than_checkpoint():
    given = arguments()
    ours = recompute.jax.jit(step_of("layers", plainly), measure=False).lower(*given).compile()
    theirs = jax.jit(step_of("layers", jax.checkpoint)).lower(*given).compile(compiler_options=KEEPING)
    assert flops(ours) == pytest.approx(flops(theirs), rel=0.005)


def flops(compiled: Any) -> float:
    return compiled.cost_analysis()["flops"]


def test_minimum_cut_keeps_expected_bytes():
    """The stacks that are kept have a quarter of the bytes of the carry, which is all that the gradient needs."""
    given = arguments()
    lowered = recompute.jax.jit(step_of("large_carry", plainly), measure=False).lower(*given)
    (row,) = rows_of(lowered)
    assert row.reason is None and row.kept_bytes == LAYERS * ROWS * 16 * 4
    theirs = jax.jit(step_of("large_carry", jax.checkpoint)).lower(*given).compile()
    less = temporaries(theirs) - temporaries(lowered.compile())
    assert less == pytest.approx(LAYERS * ROWS * (WIDTH - 16) * 4, rel=0.1)


def rows_of(lowered: Any) -> tuple[LoopRow, ...]:
    (explanation,) = recompute.explain(lowered.module)
    return explanation.loops


@pytest.mark.parametrize("length", [0, 1])
def test_loops_of_zero_or_one_iteration_keep_results(length: int):
    """Loops of zero or one iteration, which XLA unrolls, keep their results."""

    def loss(w: Any, x: Any) -> Any:
        return layers(plainly, w[:length], x)

    given = arguments()
    step = recompute.jax.jit(jax.value_and_grad(loss), measure=True)
    assert not far_apart(step(*given), jax.jit(jax.value_and_grad(loss))(*given))


def test_policy_applies_inside_the_body():
    def loss(around: Any, w: Any, x: Any) -> Any:
        body = around(lambda h, w: (jnp.tanh(jnp.sin(h @ w)) @ w, None))
        return jax.lax.scan(body, x, w)[0].sum()

    def around(function: Any) -> Any:
        return jax.checkpoint(function, policy=jax.checkpoint_policies.dots_saveable)

    given = arguments()
    ours = recompute.jax.jit(jax.value_and_grad(lambda w, x: loss(plainly, w, x)), policy="dots_saveable")
    lowered = ours.lower(*given)
    theirs = jax.jit(jax.value_and_grad(lambda w, x: loss(around, w, x))).lower(*given).compile()
    assert temporaries(lowered.compile()) <= 1.03 * temporaries(theirs)
    assert flops(lowered.compile()) <= 1.005 * flops(theirs)


def test_only_the_named_scope_in_the_body_is_recomputed():
    """Values outside the named scope are kept."""

    def loss(w: Any, x: Any) -> Any:
        def body(h: Any, w: Any) -> Any:
            h = jnp.sin(h @ w)
            with jax.named_scope("inner"):
                h = jnp.tanh(jnp.exp(jnp.cos(h)))
            return h, None

        return jax.lax.scan(body, x, w)[0].sum()

    given = arguments()
    lowered = recompute.jax.jit(jax.value_and_grad(loss), segments="inner", measure=False).lower(*given)
    text = lowered.as_text()
    assert lowered.why is None and text.count("stablehlo.dot_general") == 3
    assert text.count("stablehlo.exponential") == 2
    assert not far_apart(lowered.compile()(*given), jax.jit(jax.value_and_grad(loss))(*given))


def test_remark_names_effect_in_loop():
    """An effect in a loop is kept and named in a remark, and the layer around it is recomputed."""

    def loss(w: Any, x: Any) -> Any:
        def body(h: Any, w: Any) -> Any:
            h = h @ w
            jax.debug.callback(lambda _: None, h[0, 0])
            return jnp.sin(h), None

        return jax.lax.scan(body, x, w)[0].sum()

    lowered = recompute.jax.jit(jax.value_and_grad(loss), measure=False).lower_quietly(*arguments())
    message = "stablehlo.custom_call runs once in each iteration: the custom call @"
    assert lowered.rewritten and any(message in str(remark) for remark in lowered.remarks)


def test_error_about_a_step_without_locations_does_not_concern_the_copies_in_its_loops():
    """The copies in a loop have locations of their own, from which the phases of the other operations do not follow."""

    def step(weights: Any, x: Any) -> Any:
        return jax.grad(lambda weights: jnp.sum(layers(weights, x)))(weights).astype(jnp.float16)

    def layers(weights: Any, x: Any) -> Any:
        return jax.lax.scan(lambda h, w: (h + jnp.tanh(jnp.sin(h @ w)), None), x, weights)[0]

    text = jax.jit(step).lower(jnp.ones((LAYERS, WIDTH, WIDTH)), jnp.ones((ROWS, WIDTH))).as_text()
    with pytest.raises(recompute.Refusal, match="no location names transpose"):
        recompute.rewrite(text)
