"""Complete steps, as JAX lowers them, cross the bridge."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from recompute.test.imports import ROOT
from recompute.test.unit.frontends.jax.bridge.crossings import crosses
from recompute.test.unit.frontends.jax.steps import batch, jax, jnp, mlp, weights

X = jax.ShapeDtypeStruct((8, 8), jnp.float32)
lax: Any = jax.lax


def of_bf16(x: Any) -> Any:
    return jax.grad(lambda y: jnp.sum(jnp.tanh(y.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16))).astype(jnp.float32))(x)


def dropout(kind: str, x: Any) -> Any:
    key = jax.random.key(0, impl=kind)
    return jax.grad(lambda y: jnp.sum(jnp.where(jax.random.bernoulli(key, 0.5, y.shape), y**2, 0)))(x)


def scan(x: Any) -> Any:
    return jax.grad(lambda y: jnp.sum(lax.scan(lambda c, _: (jnp.sin(c @ y), c), y, length=3)[1]))(x)


def branches(x: Any) -> Any:
    return jax.grad(lambda y: lax.cond(y[0, 0] > 0, jnp.sum, lambda z: jnp.sum(z**2), y))(x), lax.switch(
        x[0, 0].astype(int), [jnp.sin, jnp.cos, jnp.tan], x
    )


def loop(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] @ x), (0, x))


@jax.custom_vjp
def clipped(x: Any) -> Any:
    return jnp.sin(x)


clipped.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (jnp.clip(g * jnp.cos(x), -1, 1),))


def own_gradient(x: Any) -> Any:
    return jax.grad(lambda y: jnp.sum(clipped(y)))(x)


def lapack(x: Any) -> Any:
    return jnp.linalg.cholesky(x @ x.T), jnp.linalg.qr(x), jnp.linalg.svd(x), jnp.linalg.eigh(x @ x.T)


def complex_numbers(x: Any) -> Any:
    return jnp.fft.irfft(jnp.fft.rfft(x) * (1 + 2j)) + jnp.real(x * np.array([1j, 2.5]).repeat(4))


def indexing(x: Any) -> Any:
    first = lax.dynamic_update_slice(x, x[:2, :2], (x[0, 0].astype(int), 0))
    return x.at[jnp.array([1, 2]), 3].add(1.0), first, jnp.sort(x), jnp.argmax(x, 1), lax.top_k(x, 2), x[::2, ::-1]


def convolution(x: Any) -> Any:
    image = x.reshape(1, 1, 8, 8)
    dilated = partial(lax.conv_general_dilated, window_strides=(2, 1), padding=((1, 2), (0, 0)), rhs_dilation=(1, 2))
    pooled = lax.reduce_window(image, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "SAME")
    return dilated(image, jnp.ones((1, 1, 3, 3))), pooled, jnp.cumsum(x, 0)


def small_numbers(x: Any) -> Any:
    table, mask = jnp.asarray(np.arange(-8, 8).astype(jnp.int4)), np.eye(8, dtype=bool)
    return x.astype(jnp.float8_e4m3fn), table, x.astype(jnp.uint4), mask | x.astype(bool)


def foreign(x: Any) -> Any:
    jax.debug.print("{x}", x=x[0, 0])
    return jax.pure_callback(np.sin, X, x), lax.reduce_precision(x, 5, 10), jax.nn.gelu(x), lax.erf_inv(x)


def precise(x: Any) -> Any:
    return jnp.einsum("ab,cb->ac", x, x, precision="highest", preferred_element_type=jnp.float32), jax.checkpoint(
        lambda y: jnp.sin(y)
    )(x)


def pallas(x: Any) -> Any:
    from jax.experimental import pallas as pl

    def double(read: Any, written: Any) -> None:
        written[...] = read[...] * 2

    return pl.pallas_call(double, out_shape=X, interpret=True)(x)


STEPS: dict[str, Callable[[Any], Any]] = {
    item.__name__: item
    for item in (
        of_bf16,
        scan,
        branches,
        loop,
        own_gradient,
        lapack,
        complex_numbers,
        indexing,
        convolution,
        small_numbers,
        foreign,
        precise,
        pallas,
    )
} | {f"dropout of {kind}": partial(dropout, kind) for kind in ("threefry2x32", "rbg", "unsafe_rbg")}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_lowered_steps_cross_in_both_directions(step: Callable[[Any], Any]):
    crosses(jax.jit(step).lower(X).compiler_ir())


def test_sixty_four_bit_numbers_cross():
    with jax.enable_x64(True):
        double = jax.ShapeDtypeStruct((4, 4), jnp.float64)
        crosses(jax.jit(lambda x: (jnp.linalg.inv(x), x * (1 + 2j), x.astype(jnp.int64))).lower(double).compiler_ir())


def test_donated_arguments_and_names_cross():
    step = jax.jit(mlp().step, donate_argnums=0, keep_unused=True)
    crosses(step.lower(weights(), batch()).compiler_ir())


def test_symbolic_sizes_round_trip():
    (size,) = jax.export.symbolic_shape("n")
    shape = jax.ShapeDtypeStruct((size, 4), jnp.float32)
    module = jax.jit(lambda x: jnp.sum(jnp.sin(x) * x.shape[0])).trace(shape).lower().compiler_ir()
    crosses(module, in_generic_form=True)


MESH = """
import jax, numpy as np, jax.numpy as jnp
from functools import partial
from jax.sharding import NamedSharding, PartitionSpec as P
from recompute.test.unit.frontends.jax.bridge.crossings import crosses, text_of
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
x = jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("data", "model")))
@partial(jax.shard_map, mesh=mesh, in_specs=P("data", "model"), out_specs=P("data", None))
def mapped(y):
    return jax.lax.psum(jnp.sin(y) + jax.lax.all_gather(y, "model", axis=1).sum(), "model")
def step(y):
    held = jax.lax.with_sharding_constraint(jnp.cos(y), NamedSharding(mesh, P(None, "model")))
    return jnp.sum(mapped(held) ** 2) + jnp.sum(jax.lax.optimization_barrier(held))
for shardy in (True, False):
    jax.config.update("jax_use_shardy_partitioner", shardy)
    module = jax.jit(jax.value_and_grad(step), in_shardings=x.sharding).lower(x).compiler_ir()
    assert ("sdy.manual_computation" in text_of(module)) == shardy
    crosses(module)
    jax.clear_caches()
print("crossed")
"""


def test_step_for_several_devices_crosses():
    """Meshes, shardings and manual computations of Shardy cross, and so does `mhlo.sharding` in their place."""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    paths = {"PYTHONPATH": str(ROOT.parent), "PATH": "/usr/bin:/bin"}
    completed = subprocess.run(
        [sys.executable, "-c", MESH], env=flags | paths, capture_output=True, text=True, timeout=120, check=False
    )
    assert completed.stdout == "crossed\n", completed.stderr[-3000:]
