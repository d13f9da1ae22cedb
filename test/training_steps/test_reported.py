"""Steps modelled on public bug reports: the memory of hand-placed `jax.checkpoint`, or an error that names the
remedy."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import recompute

pytestmark = pytest.mark.slow

KEPT: Any = {"xla_disable_hlo_passes": "cse_barrier_expander"}
draw = np.random.default_rng(0)


def normal(*shape: int) -> jax.Array:
    return jnp.asarray(draw.normal(0, 0.3, shape), jnp.float32)


def adapted_in_a_loop(wrap):
    """Return a meta-learning step whose loss differentiates through gradient steps in a scan."""

    def inner(w, x):
        return jnp.mean(jnp.tanh(jnp.tanh(x @ w["a"]) @ w["b"]) ** 2)

    def loss(w, x):
        update = wrap(lambda w, _: (jax.tree.map(lambda v, g: v - 0.1 * g, w, jax.grad(inner)(w, x)), None))
        return inner(lax.scan(update, w, None, length=8)[0], x)

    return jax.value_and_grad(loss), ({"a": normal(32, 64), "b": normal(64, 32)}, normal(512, 32))


def adapted_one_after_the_other(wrap):
    """Return a meta-learning step with unrolled gradient steps, each with another inner loss."""

    def inner(w, x, power):
        return jnp.mean(jnp.abs(jnp.tanh(jnp.tanh(x @ w["a"]) @ w["b"])) ** power)

    def loss(w, x):
        for power in (2.0, 3.0, 2.5, 4.0):
            update = wrap(
                lambda w, power=power: jax.tree.map(lambda v, g: v - 0.1 * g, w, jax.grad(inner)(w, x, power))
            )
            w = update(w)
        return inner(w, x, 2.0)

    return jax.value_and_grad(loss), ({"a": normal(32, 64), "b": normal(64, 32)}, normal(512, 32))


def bounded_loops(wrap):
    """Return a bounded while loop: a loop whose body skips an inner loop once it is done."""

    def layer(p, x):
        return x + 0.1 * jnp.tanh(jnp.sin(x @ p["a"]) @ p["b"])

    def inner(p, x):
        return lax.scan(wrap(lambda x, _: (layer(p, x), None)), x, None, length=8)[0]

    def loss(p, x):
        body = wrap(lambda x, i: (lax.cond(i < 5, lambda x: inner(p, x), lambda x: x, x), None))
        return jnp.mean(lax.scan(body, x, jnp.arange(6))[0] ** 2)

    return jax.value_and_grad(loss), ({"a": normal(32, 64), "b": normal(64, 32)}, normal(256, 32))


STEPS = [adapted_in_a_loop, adapted_one_after_the_other, bounded_loops]


def temporaries(compiled: Any) -> int:
    return compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.slow("adapted_one", "bounded_loops", "adapted_in_a_loop")
@pytest.mark.parametrize("build", STEPS, ids=lambda build: build.__name__)
def test_reported_steps_need_no_more_than_checkpoint(build) -> None:
    step, arguments = build(lambda body: body)
    plain = temporaries(jax.jit(step).lower(*arguments).compile())
    theirs = min(
        temporaries(jax.jit(build(wrap)[0]).lower(*arguments).compile(compiler_options=KEPT))
        for wrap in (jax.checkpoint, lambda body: jax.checkpoint(body, prevent_cse=False))
    )
    lowered = recompute.jax.jit(step).lower(*arguments)
    assert lowered.rewritten is not None and lowered.rewritten.proof
    assert temporaries(lowered.compile()) <= 1.02 * theirs
    assert theirs < 0.7 * plain


def test_error_names_forward_over_reverse() -> None:
    def loss(w, x):
        return jnp.mean(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2)

    product = recompute.jax.jit(lambda w, v, x: jax.jvp(lambda w: jax.grad(loss)(w, x), (w,), (v,)))
    with pytest.warns(recompute.jax.NothingSaved, match=r"derivative in forward mode.*jax\.vjp of jax\.grad"):
        product(jnp.ones((32, 32)), jnp.ones((32, 32)), jnp.ones((64, 32)))


def test_elementwise_loop_warning_names_remedy() -> None:
    def loss(x):
        return jnp.mean(lax.fori_loop(0, 64, lambda _, x: jnp.sin(x), x))

    step = recompute.jax.jit(jax.grad(loss))
    with pytest.warns(recompute.jax.NothingSaved, match=r"loops='periodic\(auto\)'.*or give a budget"):
        step(jnp.ones(4096))
    better = recompute.jax.jit(jax.grad(loss), loops="periodic(auto)").lower(jnp.ones(4096))
    plain = jax.jit(jax.grad(loss)).lower(jnp.ones(4096)).compile()
    assert temporaries(better.compile()) < 0.5 * temporaries(plain)
