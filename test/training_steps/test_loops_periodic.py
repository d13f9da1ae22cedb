"""Carries kept every k iterations: the memory of checkpoints nested by hand, proved, with equal results."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import pytest

import recompute

pytest.importorskip("jax")

from recompute.test.unit.frontends.jax.steps import far_apart, jax, jnp, temporaries

pytestmark = pytest.mark.slow

LENGTH, WIDTH, ROWS, EVERY = 64, 32, 256, 8


def arguments(rows: int = ROWS) -> tuple[Any, Any]:
    w, x = jax.random.split(jax.random.key(0))
    return jax.random.normal(w, (WIDTH, WIDTH)) * 0.2, jax.random.normal(x, (rows, WIDTH))


def layer(h: Any, i: Any, w: Any) -> tuple[Any, None]:
    return jnp.tanh(h @ w) + jnp.sin(h * 0.01 * i), None


def plain(w: Any, x: Any, length: int = LENGTH) -> Any:
    numbers = jnp.arange(length, dtype=jnp.float32)
    return (jax.lax.scan(lambda h, i: layer(h, i, w), x, numbers)[0] ** 2).mean()


def nested(w: Any, x: Any) -> Any:
    """Return the loss with checkpoints around each chunk and each layer in it."""
    body = jax.checkpoint(lambda h, i: layer(h, i, w))
    chunk = jax.checkpoint(lambda h, numbers: jax.lax.scan(body, h, numbers))
    return (jax.lax.scan(chunk, x, jnp.arange(LENGTH, dtype=jnp.float32).reshape(-1, EVERY))[0] ** 2).mean()


def lowered_with(loss: Any, given: Any, loops: str) -> Any:
    lowered = recompute.jax.jit(jax.value_and_grad(loss), loops=loops, measure=False).lower(*given)
    assert lowered.why is None and lowered.rewritten is not None
    assert lowered.rewritten.proof is not None and lowered.rewritten.proof.tier == 2
    assert any("saves its carries" in str(remark) for remark in lowered.remarks), lowered.remarks
    return lowered


def flops(compiled: Any) -> float:
    return compiled.cost_analysis()["flops"]


def test_periodic_loop_needs_no_more_than_nested_checkpoints():
    given = arguments()
    ours = lowered_with(plain, given, f"periodic({EVERY})").compile()
    theirs = jax.jit(jax.value_and_grad(nested)).lower(*given).compile()
    step = jax.jit(jax.value_and_grad(plain)).lower(*given).compile()
    assert temporaries(ours) <= 1.05 * temporaries(theirs)
    assert temporaries(ours) < 0.12 * temporaries(step)
    assert flops(ours) == pytest.approx(flops(theirs), rel=0.005)
    assert not far_apart(ours(*given), step(*given))


def test_code_size_is_independent_of_the_length():
    def size(length: int) -> int:
        return len(str(lowered_with(lambda w, x: plain(w, x, length), arguments(), "periodic(8)").module))

    assert size(4096) < 1.01 * size(64)


@pytest.mark.parametrize(("length", "every"), [(64, 8), (256, 16), (60, 6), (61, 7)])
def test_auto_chooses_period_of_fewest_bytes(length: int, every: int):
    """The chosen chunks are about the square root of the length; 61 iterations leave a remainder of five."""
    message = lowered_with(lambda w, x: plain(w, x, length), arguments(), "periodic(auto)").remarks
    assert any(f"saves its carries every {every} iterations," in str(text) for text in message), message


def backwards(w: Any, x: Any) -> Any:
    return jax.lax.scan(lambda h, i: layer(h, i, w), x, jnp.arange(30.0), reverse=True)[0].sum()


def outputs_stacked(w: Any, x: Any) -> Any:
    def body(h: Any, i: Any) -> Any:
        h, _ = layer(h, i, w)
        return h, (h.mean(), h > 0)

    h, (means, signs) = jax.lax.scan(body, x, jnp.arange(30.0))
    return h.sum() + (means * jnp.arange(30.0)).sum() + jnp.where(signs, 0.5, 0.1).sum()


def several_carries(w: Any, x: Any) -> Any:
    def body(carry: Any, i: Any) -> Any:
        a, b, n = carry
        return (jnp.tanh(a @ w) + 0.1 * b, jnp.sin(a), n + i), None

    (a, b, n), _ = jax.lax.scan(body, (x, jnp.cos(x), 0), jnp.arange(30))
    return (a * b).sum() + n


def with_dropout(w: Any, x: Any) -> Any:
    def body(carry: Any, _: Any) -> Any:
        h, key = carry
        key, drawn = jax.random.split(key)
        return (jnp.where(jax.random.bernoulli(drawn, 0.8, h.shape), jnp.tanh(h @ w), 0), key), None

    return jax.lax.scan(body, (x, jax.random.key(3)), None, length=30)[0][0].sum()


def with_dropout_of_the_index(w: Any, x: Any) -> Any:
    def body(h: Any, i: Any) -> Any:
        drawn = jax.random.fold_in(jax.random.PRNGKey(3), i)
        return jnp.where(jax.random.bernoulli(drawn, 0.8, h.shape), jnp.tanh(h @ w), 0), None

    return jax.lax.scan(body, x, jnp.arange(30))[0].sum()


def in_bf16(w: Any, x: Any) -> Any:
    w, x = w.astype(jnp.bfloat16), x.astype(jnp.bfloat16)
    return jax.lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, None, length=30)[0].astype(jnp.float32).sum()


def lstm(w: Any, x: Any) -> Any:
    def body(carry: Any, each: Any) -> Any:
        h, c = carry
        gates = jnp.stack([h @ w + each, h @ w.T, h - each, each @ w])
        i, f, g, o = jnp.tanh(gates)
        c = (f + 1) * c / 2 + i * g
        return (o * jnp.tanh(c), c), h.mean()

    (h, c), means = jax.lax.scan(body, (x, jnp.zeros_like(x)), jnp.sin(jnp.arange(30.0))[:, None, None] * x)
    return h.sum() + c.sum() + means.sum()


def weights_of_each_layer(w: Any, x: Any) -> Any:
    ws = w * jnp.cos(jnp.arange(30.0))[:, None, None]
    return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws)[0].sum()


def with_index(w: Any, x: Any) -> Any:
    return jax.lax.fori_loop(2, 32, lambda i, h: layer(h, i, w)[0], x).sum()


LOSSES = (
    backwards,
    outputs_stacked,
    several_carries,
    with_dropout,
    with_dropout_of_the_index,
    in_bf16,
    lstm,
    weights_of_each_layer,
    with_index,
)


@pytest.mark.slow("with_dropout-", "in_bf16", "lstm", "with_dropout_of_the_index")
@pytest.mark.parametrize(("loss", "every"), [(backwards, 6), *((loss, 7) for loss in LOSSES)])
def test_periodic_loop_keeps_results(loss: Any, every: int):
    """Results are kept for thirty iterations in five chunks of six, and in four of seven with a remainder of two."""
    given = arguments(16)
    lowered = lowered_with(loss, given, f"periodic({every})")
    assert not far_apart(lowered.compile()(*given), jax.jit(jax.value_and_grad(loss))(*given))


@pytest.mark.parametrize("loops", ["periodic", "periodic(0)", "periodic(-2)", "periodic(2.5)", "every 8", ""])
def test_invalid_loop_schedules_are_rejected(loops: str):
    with pytest.raises(ValueError, match=r"periodic\(8\)"):
        recompute.jax.jit(plain, loops=loops)


def test_remark_states_that_chunks_need_more_than_stacks():
    given = arguments()
    lowered = recompute.jax.jit(jax.value_and_grad(plain), loops="periodic(63)", measure=False).lower(*given)
    assert any("and its stacks" in str(remark) for remark in lowered.remarks), lowered.remarks


def test_binomial_slots_need_a_twentieth_of_the_memory():
    given = arguments()
    step = jax.jit(jax.value_and_grad(plain)).lower(*given).compile()
    lowered = recompute.jax.jit(jax.value_and_grad(plain), loops="binomial(3)", proof=False, measure=False)
    ours = lowered.lower(*given).compile()
    assert temporaries(ours) < 0.05 * temporaries(step)
    assert not far_apart(ours(*given), step(*given))


def test_binomial_slots_with_proof_are_rejected():
    with pytest.raises(ValueError, match="proof=False"):
        recompute.jax.jit(plain, loops="binomial(3)")
