"""Custom calls and callbacks in scanned layers: the layer around them is recomputed, and effects are preserved."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingParameterType=false
from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl

import recompute
from recompute.dialects.stablehlo.custom_call import CustomCallOp

pytestmark = pytest.mark.slow

KEPT: Any = {"xla_disable_hlo_passes": "cse_barrier_expander"}
remat = partial(jax.checkpoint, prevent_cse=False)
same = lambda body: body  # noqa: E731
seen = list[float]()


def dense(x, p):
    return jnp.tanh(jnp.sin(x @ p["u"]) @ p["d"])


def gram(h):
    return h.T @ h + 4 * jnp.eye(h.shape[1])


def factorized(x, p):
    h = dense(x, p)
    return x + 0.1 * h @ jnp.linalg.cholesky(gram(h))


def solved(x, p):
    h = dense(x, p)
    return x + jnp.linalg.solve(gram(h), h.T).T


@jax.custom_vjp
def on_host(x):
    return jax.pure_callback(lambda y: np.tanh(np.asarray(y)), jax.ShapeDtypeStruct(x.shape, x.dtype), x)


on_host.defvjp(lambda x: (lambda y: (y, y))(on_host(x)), lambda y, g: (g * (1 - y * y),))


def called_back(x, p):
    return x + dense(on_host(dense(x, p)), p)


def watched(x, p):
    h = dense(x, p)
    jax.debug.callback(lambda v: seen.append(float(v)), h.mean())
    return x + dense(h, p)


def watched_in_order(x, p):
    h = dense(x, p)
    jax.debug.callback(lambda v: seen.append(float(v)), h.mean(), ordered=True)
    return x + dense(h, p)


def watched_in_a_branch(x, p):
    h = dense(x, p)
    lax.cond(h.mean() > -9.0, lambda: jax.debug.callback(lambda: seen.append(1.0)), lambda: None)
    return x + dense(h, p)


def stacked(layer, wrap):
    def loss(p, x):
        return jnp.mean(lax.scan(wrap(lambda x, p: (layer(x, p), None)), x, p)[0] ** 2)

    return loss


def arguments() -> tuple[dict[str, jax.Array], jax.Array]:
    p = {"u": jnp.full((8, 32, 128), 0.1), "d": jnp.full((8, 128, 32), 0.1)}
    return p, jnp.linspace(-1, 1, 64 * 32).reshape(64, 32)


def temporaries(compiled: Any) -> int:
    return compiled.memory_analysis().temp_size_in_bytes


LAYERS = [factorized, solved, called_back, watched, watched_in_a_branch]


@pytest.mark.slow("solved", "called_back", "watched_in_a_branch", "factorized")
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
def test_layers_with_calls_need_no_more_than_checkpoint(layer) -> None:
    given = arguments()
    theirs = jax.jit(jax.value_and_grad(stacked(layer, remat))).lower(*given).compile(compiler_options=KEPT)
    plain = jax.jit(jax.value_and_grad(stacked(layer, same))).lower(*given).compile()
    lowered = recompute.jax.jit(jax.value_and_grad(stacked(layer, same))).lower(*given)
    assert lowered.rewritten is not None and lowered.rewritten.proof
    assert temporaries(lowered.compile()) <= 1.02 * temporaries(theirs) < 0.4 * temporaries(plain)


@pytest.mark.parametrize("layer", [watched, watched_in_order, watched_in_a_branch], ids=lambda layer: layer.__name__)
def test_callbacks_run_once_per_layer(layer) -> None:
    """A callback runs once for each layer, and in order if requested."""
    given, result = arguments(), list[list[float]]()
    for jit in (jax.jit, recompute.jax.jit):
        seen.clear()
        jax.block_until_ready(jit(jax.value_and_grad(stacked(layer, same)))(*given))
        jax.effects_barrier()
        result.append(list(seen) if layer is watched_in_order else sorted(seen))
    assert len(result[0]) == 8 and np.allclose(result[0], result[1])


def kernel_step() -> str:
    """Return a scanned layer with a Pallas kernel, lowered for TPU."""

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.tanh(x_ref[...])

    @jax.custom_vjp
    def activated(x):
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    activated.defvjp(lambda x: (activated(x), x), lambda x, g: (g * jnp.cos(x),))

    def loss(p, x):
        layer = lambda x, p: (x + jax.nn.gelu(activated(x @ p["u"])) @ p["d"], None)  # noqa: E731
        return jnp.mean(lax.scan(layer, x, p)[0] ** 2)

    of = jax.ShapeDtypeStruct
    p = {"u": of((6, 128, 512), jnp.float32), "d": of((6, 512, 128), jnp.float32)}
    traced = jax.jit(jax.value_and_grad(loss)).trace(p, of((256, 128), jnp.float32))
    return traced.lower(lowering_platforms=("tpu",)).as_text(debug_info=True)


def calls_in(result: recompute.Rewritten) -> int:
    return sum(isinstance(op, CustomCallOp) for op in result.module.walk())


def test_kernel_may_be_recomputed() -> None:
    result = recompute.rewrite(kernel_step())
    assert result.copies and result.proof and calls_in(result) == 2


def test_unknown_call_runs_once_unless_allowed() -> None:
    text = kernel_step().replace("@tpu_custom_call", "@mine")
    result = recompute.rewrite(text)
    assert result.copies and result.proof and calls_in(result) == 1
    assert any("the custom call @mine" in str(remark) for remark in result.remarks)
    allowed = recompute.rewrite(text, recompute.RecomputeOptions(recompute.Selection(repeatable=("mi*",))))
    assert allowed.proof and calls_in(allowed) == 2
    assert "stablehlo.custom_call @mine" in str(allowed.proof.assumptions)


def test_pattern_without_a_matching_call_is_rejected() -> None:
    with pytest.raises(Exception, match=r"repeatable: 'other' matches no custom call .*: mine"):
        recompute.rewrite(
            kernel_step().replace("@tpu_custom_call", "@mine"),
            recompute.RecomputeOptions(recompute.Selection(repeatable=("other",))),
        )
