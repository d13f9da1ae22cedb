"""In steps that compute several gradients in sequence, each gradient is recomputed as a step of its own."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import recompute
from recompute.mlir_io.parser import parse_module
from recompute.search.prepare import prepare

pytestmark = pytest.mark.slow

KEPT: Any = {"xla_disable_hlo_passes": "cse_barrier_expander"}
same = lambda block: block  # noqa: E731
draw = np.random.default_rng(0)


def network(blocks: int) -> list[jax.Array]:
    return [jnp.asarray(draw.normal(0, 0.3, (2, 32, 128)), jnp.float32) for _ in range(blocks)]


def block(x, w):
    return x + jnp.tanh(jnp.sin(x @ w[0]) @ w[1].T)


def forward(ws, x, wrap):
    for w in ws:
        x = wrap(block)(x, w)
    return x


def descend(ws, gradient):
    return jax.tree.map(lambda w, g: w - 0.1 * g, ws, gradient)


def adversaries(wrap):
    """Return a step that updates the discriminator, and then the generator against the updated discriminator."""

    def step(g, d, z, x):
        def of_d(d):
            return jnp.mean(jax.nn.softplus(-forward(d, x, wrap))) + jnp.mean(
                jax.nn.softplus(forward(d, forward(g, z, wrap), wrap))
            )

        first, gradient = jax.value_and_grad(of_d)(d)
        d = descend(d, gradient)
        second, gradient = jax.value_and_grad(
            lambda g: jnp.mean(jax.nn.softplus(-forward(d, forward(g, z, wrap), wrap)))
        )(g)
        return first, second, descend(g, gradient), d

    return step


def microbatches(wrap):
    """Return a step that sums the gradients of three unrolled microbatches, none of which reads another's values."""

    def step(ws, _, x, y):
        parts = [jax.grad(lambda ws, entry=item: jnp.mean(forward(ws, entry, wrap) ** 2))(ws) for item in (x, y, x + y)]
        return descend(ws, jax.tree.map(lambda *each: sum(each), *parts))

    return step


def tasks(wrap):
    """Return a step with the gradients of three losses through one shared forward pass."""

    def step(ws, _, x, y):
        features, pull = jax.vjp(lambda ws: forward(ws, x, wrap), ws)
        total = jax.tree.map(jnp.zeros_like, ws)
        for loss in (lambda h: jnp.mean(h**2), lambda h: jnp.mean(jnp.abs(h - y)), lambda h: jnp.mean(jnp.cos(h * y))):
            (gradient,) = pull(jax.grad(loss)(features))
            length = sum(jnp.vdot(g, g) for g in gradient)
            total = jax.tree.map(lambda t, g, length=length: t + g / jnp.sqrt(length + 1), total, gradient)
        return descend(ws, total)

    return step


STEPS = [adversaries, microbatches, tasks]


def arguments() -> tuple[Any, ...]:
    x, y = (jnp.asarray(draw.normal(0, 1, (128, 32)), jnp.float32) for _ in range(2))
    return network(5), network(5), x, y


def temporaries(compiled: Any) -> int:
    return compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.slow("microbatches")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_several_gradients_need_no_more_than_checkpoint(step) -> None:
    given = arguments()
    plain = jax.jit(step(same)).lower(*given).compile()
    theirs = jax.jit(step(jax.checkpoint)).lower(*given).compile(compiler_options=KEPT)
    lowered = recompute.jax.jit(step(same)).lower(*given)
    assert lowered.rewritten is not None and lowered.rewritten.proof
    ours = temporaries(lowered.compile())
    assert ours <= (1.1 if step is adversaries else 1.02) * temporaries(theirs)
    assert ours < 0.7 * temporaries(plain)


@pytest.mark.slow("adversaries")
@pytest.mark.parametrize("model", ["order"])
@pytest.mark.parametrize("step", [adversaries, tasks], ids=lambda step: step.__name__)
def test_one_budget_covers_all_gradients(step, model: str) -> None:
    text = jax.jit(step(same)).lower(*arguments()).as_text(debug_info=True)
    result = recompute.rewrite(text, recompute.RecomputeOptions(budget="70%", memory_model=model))
    assert result.proof and result.copies
    before, after = result.memory(model)["main"]
    assert after.peak_bytes <= 0.7 * before.peak_bytes
    again = recompute.rewrite(text, recompute.RecomputeOptions(plan=result.plans))
    assert again.text == result.text


def test_outlined_steps_record_their_containing_function() -> None:
    text = jax.jit(adversaries(same)).lower(*arguments()).as_text(debug_info=True)
    prepared = prepare(parse_module(text, "step"))
    outlined = [function.sym_name.data for function in prepared.outlined.functions]
    assert outlined and prepared.outlined.containing_functions == dict.fromkeys(outlined, "main")
