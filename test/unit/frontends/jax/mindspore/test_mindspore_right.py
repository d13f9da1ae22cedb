"""Errors of MindSpore's recomputation that do not occur here, through its own interfaces on JAX functions."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import recompute
from recompute.test.unit.frontends.jax.steps import far_apart, groups_of, jax, jnp, temporaries

pytestmark = pytest.mark.slow

ms: Any = recompute.jax.mindspore
KEEPS_BARRIERS = {"xla_disable_hlo_passes": "cse_barrier_expander"}
BLOCKS = 6
ROWS, WIDTH = 2048, 64


def gradient(block: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    def loss(x: Any, key: Any) -> Any:
        for index in range(BLOCKS):
            x = call(block, x, jax.random.fold_in(key, index))
        return jnp.sum(x**2)

    return jax.value_and_grad(loss)


def plainly(block: Callable[..., Any], *args: Any) -> Any:
    return block(*args)


def saved(block: Callable[..., Any], in_loops: bool = False) -> recompute.jax.Lowered:
    """Check that the step through `recompute(block, …)` needs less memory and has equal results; return it lowered.

    `in_loops`: compare with `jax.checkpoint`, which saves nothing in loops under XLA:CPU either.
    """
    arguments = jnp.linspace(0.1, 0.9, ROWS * WIDTH).reshape(ROWS, WIDTH), jax.random.key(7)
    lowered = recompute.jax.jit(gradient(block, ms.recompute), measure=False).lower(*arguments)
    plain = jax.jit(gradient(block, plainly)).lower(*arguments).compile()
    assert lowered.why is None, lowered.why
    compiled = lowered.compile()
    assert far_apart(compiled(*arguments), plain(*arguments)) == []
    limit = temporaries(plain) - 1
    if in_loops:
        limit = temporaries(jax.jit(gradient(jax.checkpoint(block), plainly)).lower(*arguments).compile(KEEPS_BARRIERS))
    assert temporaries(compiled) <= limit
    return lowered


def dropout(x: Any, key: Any) -> Any:
    return jnp.tanh(jnp.where(jax.random.bernoulli(key, 0.5, x.shape), jnp.sin(x) / 0.5, 0))


def uniform(x: Any, key: Any) -> Any:
    return jnp.tanh(x * jax.random.uniform(key, x.shape) + jnp.sin(x))


def gumbel(x: Any, key: Any) -> Any:
    return jax.nn.softmax(jnp.sin(x) + jax.random.gumbel(key, x.shape), axis=-1)


def rrelu(x: Any, key: Any) -> Any:
    return jnp.tanh(jnp.where(x > 0.5, x, x * jax.random.uniform(key, x.shape, minval=0.1, maxval=0.3)))


@pytest.mark.slow("gumbel", "rrelu", "uniform")
@pytest.mark.parametrize("block", [dropout, uniform, gumbel, rrelu])
def test_recomputed_random_draws_are_equal(block: Callable[..., Any]):
    """Recomputed masks are equal; in MindSpore 2,000 of 4,000 elements differ, and so do the gradients."""
    saved(block)


def test_no_gate_is_empty():
    """Every copy has a gate; in MindSpore the first gradient reads only recomputed values, so that its gate is
    empty."""
    saved_value = saved(lambda x, key: jnp.tanh(jnp.cos(jnp.exp(jnp.sin(x)))))
    groups = groups_of(saved_value)
    assert len(groups) >= BLOCKS - 1 and all(group.gates for group in groups)


def test_equal_blocks_merge_only_within_a_pass():
    """Equal operations of one pass are merged, but never a copy with its original."""

    def both(x: Any, key: Any) -> Any:
        def half(x: Any) -> Any:
            return jnp.exp(jnp.sin(x)) * x

        return jnp.tanh(ms.recompute(half, x) + ms.recompute(half, x))

    saved_value = saved(both)
    assert (
        saved_value.as_text().count("stablehlo.exponential ")
        > saved_value.plain.as_text().count("stablehlo.exponential ") / 2
    )


def test_conditional_is_recomputed():
    def block(x: Any, key: Any) -> Any:
        return jax.lax.cond(jnp.mean(x) > 0.3, lambda x: jnp.tanh(jnp.sin(x) * x), lambda x: jnp.cos(x) * x, x)

    saved_value = saved(block)
    assert saved_value.as_text().count("stablehlo.case") > saved_value.plain.as_text().count("stablehlo.case")


def test_call_in_a_branch_is_recomputed():
    def block(x: Any, key: Any) -> Any:
        inside = lambda x: jnp.tanh(jnp.sin(x) * x)  # noqa: E731
        return jax.lax.cond(jnp.mean(x) > 0.3, lambda x: ms.recompute(inside, x), lambda x: jnp.cos(x) * x, x)

    arguments = jnp.ones((ROWS, WIDTH)), jax.random.key(7)
    lowered = recompute.jax.jit(gradient(block, plainly), measure=False).lower(*arguments)
    assert far_apart(lowered.compile()(*arguments), jax.jit(gradient(block, plainly))(*arguments)) == []
    assert lowered.as_text().count("stablehlo.case") > lowered.plain.as_text().count("stablehlo.case")


@pytest.mark.parametrize("where", ["branch", "loop"])
def test_opt_out_is_respected_in_branches_and_loops(where: str):
    keep = ms.Primitive(jnp.exp).recompute(False)

    def inside(x: Any) -> Any:
        return jnp.tanh(keep(jnp.sin(x)) * x)

    def block(x: Any, key: Any) -> Any:
        if where == "branch":
            x = jax.lax.cond(jnp.mean(x) > 0.3, inside, jnp.cos, x)
        else:
            x = jax.lax.fori_loop(0, 3, lambda _, x: inside(x), x)
        return jnp.tanh(jnp.cos(x) * x)

    arguments = jnp.ones((ROWS, WIDTH)), jax.random.key(7)
    lowered = recompute.jax.jit(gradient(block, ms.recompute), measure=False).lower(*arguments)
    assert lowered.why is None, lowered.why
    assert far_apart(lowered.compile()(*arguments), jax.jit(gradient(block, plainly))(*arguments)) == []
    assert lowered.as_text().count("stablehlo.exponential") == lowered.plain.as_text().count("stablehlo.exponential")
    assert lowered.as_text().count("stablehlo.cosine") > lowered.plain.as_text().count("stablehlo.cosine")


def test_ineffective_mark_in_branch_is_reported():
    def block(x: Any, key: Any) -> Any:
        return jax.lax.cond(
            jnp.mean(x) > 0.3, lambda x: jnp.tanh(recompute.jax.save(jnp.sin(x)) * x), lambda x: jnp.cos(x) * x, x
        )

    saved_value = saved(block)
    assert any(
        "the mark on stablehlo.sine has no effect inside stablehlo.case" in str(each) for each in saved_value.remarks
    )


def test_loop_in_a_block_is_recomputed():
    def block(x: Any, key: Any) -> Any:
        return jax.lax.scan(lambda carry, _: (jnp.tanh(jnp.sin(carry) * x), None), x, None, length=3)[0]

    saved_value = saved(block, in_loops=True)
    assert saved_value.as_text().count("stablehlo.while") > saved_value.plain.as_text().count("stablehlo.while")


def test_call_in_a_loop_is_recomputed():
    """The backward loop repeats the block; MindSpore ignores the call silently."""

    def block(x: Any, key: Any) -> Any:
        def inside(x: Any) -> Any:
            return jnp.tanh(jnp.sin(x) * x)

        return jax.lax.scan(lambda carry, _: (ms.recompute(inside, carry), None), x, None, length=3)[0]

    arguments = jnp.ones((ROWS, WIDTH)), jax.random.key(7)
    lowered = recompute.jax.jit(gradient(block, plainly), measure=False).lower(*arguments)
    assert lowered.why is None and any("of new stacks: the loop" in str(remark) for remark in lowered.remarks)
    assert temporaries(lowered.compile()) < temporaries(lowered.compile_plain())
    assert not far_apart(lowered.compile()(*arguments), lowered.compile_plain()(*arguments))


def test_running_statistics_are_updated_once():
    """Running statistics are updated once; MindSpore updates those of a recomputed BatchNorm twice."""
    nnx: Any = pytest.importorskip("flax.nnx")

    class Block(nnx.Module):
        def __init__(self, rngs: Any):
            self.norm, self.dense = nnx.BatchNorm(WIDTH, rngs=rngs), nnx.Linear(WIDTH, WIDTH, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return jnp.tanh(self.norm(self.dense(x)))

    def step(call: Callable[..., Any]) -> Callable[..., Any]:
        def loss(model: Any, x: Any) -> Any:
            for block in model:
                x = call(block, x)
            return jnp.mean(x**2)

        def run(state: Any, x: Any) -> Any:
            model = nnx.merge(graph, state)
            value, gradient = nnx.value_and_grad(loss)(model, x)
            return value, gradient, nnx.state(model)

        return run

    graph, state = nnx.split(nnx.List([Block(nnx.Rngs(index)) for index in range(3)]))
    x = jnp.linspace(0, 1, ROWS * WIDTH).reshape(ROWS, WIDTH)
    lowered = recompute.jax.jit(step(ms.recompute), measure=False).lower(state, x)
    assert lowered.why is None, lowered.why
    assert far_apart(lowered.compile()(state, x), jax.jit(step(plainly))(state, x)) == []
