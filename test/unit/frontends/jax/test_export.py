"""`jax.export` and `trace` of a step yield the rewritten step, or give a warning."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation.compiler_options import DISABLED, DROPS_BARRIERS, merges_copies
from recompute.test.unit.frontends.jax.steps import batch, far_apart, jax, jnp, mlp, weights

BARRIER = "stablehlo.optimization_barrier"
export: Any = pytest.importorskip("jax.export")


@pytest.mark.parametrize("around", [lambda step: step, jax.jit], ids=["step", "jit of the step"])
def test_exported_step_saves_memory_with_equal_results(around: Callable[[Any], Any]):
    arguments = weights(), batch(2048)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", recompute.jax.BarriersDropped)
        ours = export.export(around(recompute.jax.jit(mlp().step)))(*arguments)
    plain = export.export(jax.jit(mlp().step))(*arguments)
    assert BARRIER in ours.mlir_module()
    assert (ours.in_tree, ours.out_tree, ours.in_avals) == (plain.in_tree, plain.out_tree, plain.in_avals)
    options = {DISABLED: DROPS_BARRIERS}
    less, more = (jax.jit(step.call).lower(*arguments).compile(options) for step in (ours, plain))
    assert less.memory_analysis().temp_size_in_bytes < 0.6 * more.memory_analysis().temp_size_in_bytes
    assert far_apart(less(*arguments), more(*arguments)) == []


@pytest.mark.skipif(not merges_copies(("cpu",)), reason="this JAX keeps barriers")
def test_export_for_cpu_warns_that_barriers_are_dropped():
    with pytest.warns(recompute.jax.BarriersDropped, match=r"jax.jit\(exported.call, compiler_options="):
        export.export(recompute.jax.jit(mlp().step))(weights(), batch(2048))


def test_export_for_another_platform_is_rewritten():
    exported = export.export(recompute.jax.jit(mlp().step), platforms=["cuda"])(weights(), batch(2048))
    assert exported.platforms == ("cuda",)
    assert BARRIER in exported.mlir_module()


def test_export_for_several_platforms_is_the_plain_step_with_a_warning():
    with pytest.warns(recompute.jax.NothingSaved, match=r"several platforms at once \(cpu, cuda\); export it once"):
        exported = export.export(recompute.jax.jit(mlp().step), platforms=["cpu", "cuda"])(weights(), batch(2048))
    assert BARRIER not in exported.mlir_module()


def test_export_with_symbolic_shapes_is_the_plain_step_with_a_warning():
    rows = jax.ShapeDtypeStruct(export.symbolic_shape("rows, 16"), jnp.float32)
    with pytest.warns(recompute.jax.NothingSaved, match="recomputation needs static shapes"):
        export.export(recompute.jax.jit(mlp().step))(weights(), rows)


def test_traced_step_lowers_to_the_rewritten_step():
    step = recompute.jax.jit(mlp().step)
    traced = step.trace(weights(), batch(2048))
    assert isinstance(traced, jax.stages.Traced)
    assert traced.lower() is step.lower(weights(), batch(2048))
    assert BARRIER in traced.lower(lowering_platforms=("tpu",)).as_text()


def test_traced_step_has_the_jaxpr_of_the_plain_step():
    step = recompute.jax.jit(mlp().step)
    assert str(step.trace(weights(), batch()).jaxpr) == str(jax.jit(mlp().step).trace(weights(), batch()).jaxpr)


def test_jaxpr_of_a_caller_names_the_step():
    step = recompute.jax.jit(mlp().step)
    assert f"step={step.__name__}" in str(jax.make_jaxpr(lambda *arguments: step(*arguments))(weights(), batch()))


def test_export_keeps_static_arguments():
    def step(w: Any, x: Any, *, scale: int) -> Any:
        def loss(w: Any) -> Any:
            return jnp.mean((jnp.tanh(jnp.sin(x @ w) * scale) @ w.T) ** 2)

        return jax.value_and_grad(loss)(w)

    exported = export.export(recompute.jax.jit(step, static_argnames="scale"), platforms=["cuda"])
    plain = export.export(jax.jit(step, static_argnames="scale"), platforms=["cuda"])
    arguments = jnp.ones((16, 64)), jnp.ones((256, 16))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", recompute.jax.NothingSaved)
        assert exported(*arguments, scale=2).in_avals == plain(*arguments, scale=2).in_avals


def is_exported_with_barriers(step: Any, *arguments: Any) -> bool:
    """Return whether the exported step contains the barriers of a rewrite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", recompute.jax.BarriersDropped)
        return BARRIER in export.export(step)(*arguments).mlir_module()


def test_step_of_nnx_is_exported_from_its_arrays():
    nnx: Any = pytest.importorskip("flax.nnx")

    class Model(nnx.Module):
        def __init__(self):
            self.layers = nnx.List([nnx.Linear(16, 16, rngs=nnx.Rngs(0)) for _ in range(4)])

        def __call__(self, x: Any) -> Any:
            for layer in self.layers:
                x = x + jnp.tanh(jnp.sin(layer(x)))
            return x

    def gradient(model: Any, x: Any) -> Any:
        return nnx.value_and_grad(lambda model: (model(x) ** 2).mean())(model)

    model = Model()
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(recompute.nnx.jit(gradient))(model, batch(2048))
    graph, arrays = nnx.split(model)
    step = recompute.jax.jit(lambda arrays, x: gradient(nnx.merge(graph, arrays), x))
    assert is_exported_with_barriers(step, arrays, batch(2048))


def test_step_of_equinox_is_exported_from_its_arrays():
    eqx: Any = pytest.importorskip("equinox")
    layers = [eqx.nn.Linear(16, 16, key=jax.random.key(i)) for i in range(4)]

    def loss(layers: Any, x: Any) -> Any:
        for layer in layers:
            x = x + jnp.tanh(jnp.sin(jax.vmap(layer)(x)))
        return (x**2).mean()

    gradient = eqx.filter_value_and_grad(loss)
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(recompute.eqx.filter_jit(gradient))(layers, batch(2048))
    arrays, rest = eqx.partition(layers, eqx.is_array)
    step = recompute.jax.jit(lambda arrays, x: gradient(eqx.combine(arrays, rest), x))
    assert is_exported_with_barriers(step, arrays, batch(2048))
