"""MindSpore's interfaces on JAX functions recompute the configured blocks, and change nothing else."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import recompute
from recompute.test.imports import ROOT
from recompute.test.unit.frontends.jax.steps import batch, far_apart, groups_of, jax, jnp, temporaries, weights

ms: Any = recompute.jax.mindspore
KEEPS_BARRIERS = {"xla_disable_hlo_passes": "cse_barrier_expander"}
LAYERS = 4
Call = Callable[..., Any]


def layer(w: Any, x: Any) -> Any:
    return x + jnp.tanh(jnp.sin(x @ w["up"]) * 2) @ w["down"]


def gradient(call: Call) -> Call:
    def loss(parameters: Any, x: Any) -> Any:
        for w in parameters:
            x = call(w, x)
        return jnp.mean(x**2)

    return jax.value_and_grad(loss)


@cache
def lowered(call: Call) -> recompute.jax.Lowered:
    """Return the lowered step of a call, whose later changes have no effect."""
    return recompute.jax.jit(gradient(call), measure=False).lower(weights(LAYERS), batch())


def count(first: Any, operation: str) -> int:
    return first.as_text().count(f"stablehlo.{operation} ")


def cell(function: Call, **switches: bool) -> Call:
    result = ms.Cell(function)
    result.recompute(**switches)
    return result


@cache
def results_of(plain: Call) -> Any:
    return jax.jit(gradient(plain))(weights(LAYERS), batch())


def equal_to_plain(call: Call, plain: Call = layer) -> None:
    arguments = weights(LAYERS), batch()
    expected = results_of(plain)
    assert far_apart(lowered(call).compile()(*arguments), expected) == []
    # Under plain `jax.jit` the call is nothing at all.
    assert far_apart(jax.jit(gradient(call))(*arguments), expected) == []


def test_segment_per_call_matches_jax_checkpoint_memory():
    arguments = weights(LAYERS), batch()
    theirs = jax.jit(gradient(jax.checkpoint(layer))).lower(*arguments).compile(KEEPS_BARRIERS)
    for call in (lambda w, x: ms.recompute(layer, w, x), cell(layer)):
        actual = lowered(call)
        assert actual.why is None and {group.segment for group in groups_of(actual)} >= {"layer#1"}
        assert temporaries(actual.compile()) <= 1.02 * temporaries(theirs)
        equal_to_plain(call)


def test_retracing_gives_equal_text():
    """Two traces compile equal text, although scopes are numbered as they are traced."""
    texts = {lowered(lambda w, x: ms.recompute(layer, w, x)).as_text() for _ in range(2)}
    assert len(texts) == 1


def test_unwrapped_calls_are_not_recomputed():
    def mixed(w: Any, x: Any) -> Any:
        return layer(w, ms.recompute(layer, w, x))

    actual = lowered(mixed)
    assert 0 < count(actual, "sine") - count(actual.plain, "sine") <= LAYERS
    equal_to_plain(mixed, lambda w, x: layer(w, layer(w, x)))


@pytest.mark.slow("True")
@pytest.mark.parametrize("outputs", [False, True])
def test_output_recompute_keeps_blocks_apart(outputs: bool):
    """Ten blocks stay ten segments; MindSpore merges them into one and saves nothing."""
    for call in (
        lambda w, x: ms.recompute(layer, w, x, output_recompute=outputs),
        cell(layer, output_recompute=outputs),
    ):
        actual = lowered(call)
        products = count(actual, "dot_general") - count(actual.plain, "dot_general")
        assert products > LAYERS if outputs else products <= LAYERS
        assert temporaries(actual.compile()) < 0.8 * temporaries(actual.plain.compile())
        equal_to_plain(call)


@pytest.mark.parametrize("reentrant", [False, True])
def test_nested_arguments_are_differentiated(reentrant: bool):
    """Lists, tuples, dictionaries, keyword arguments, integers and None are accepted under either way to
    differentiate."""

    def block(pair: Any, *, how: dict[str, Any], times: int, nothing: None) -> Any:
        x, (w, _) = pair
        return {"out": [layer(w, x) * times, None, how["number"] + 1]}

    def call(w: Any, x: Any) -> Any:
        out = ms.recompute(block, (x, [w, 3]), use_reentrant=reentrant, how={"number": 2}, times=1, nothing=None)["out"]
        assert out[1:] == [None, 3]
        return out[0]

    equal_to_plain(call)
    assert count(lowered(call), "sine") > LAYERS


def test_outer_cell_wins_and_inner_operation_opts_out():
    inner, sine = cell(lambda x: jnp.tanh(x * 2)), ms.Primitive(jnp.sin).recompute(False)

    def both(w: Any, x: Any) -> Any:
        return x + inner(sine(x @ w["up"])) @ w["down"]

    actual = lowered(cell(both))
    assert {group.segment.partition("#")[0] for group in groups_of(actual)} == {"both"}
    assert count(actual, "sine") == count(actual.plain, "sine") and count(actual, "tanh") > count(actual.plain, "tanh")
    equal_to_plain(cell(both))


def test_primitive_outside_cells_is_recomputed():
    exponential = ms.Primitive(jnp.exp)
    assert exponential.recompute() is exponential

    def block(exp: Call) -> Call:
        return lambda w, x: x + jnp.tanh(exp(x @ w["up"]) * 2) @ w["down"]

    actual = lowered(block(exponential))
    assert count(actual, "exponential") == LAYERS + count(actual.plain, "exponential")
    assert count(actual, "tanh") == count(actual.plain, "tanh")
    equal_to_plain(block(exponential), block(jnp.exp))


def test_unconfigured_cell_adds_no_segment():
    for call in (ms.Cell(layer), lambda w, x: x + jnp.tanh(ms.Primitive(jnp.sin)(x @ w["up"]) * 2) @ w["down"]):
        assert "recompute:" not in jax.jit(gradient(call)).lower(weights(1), batch()).as_text(debug_info=True)
        equal_to_plain(call)


def test_last_recompute_call_wins():
    result = ms.Cell(layer)
    result.recompute()
    result.recompute(output_recompute=True)
    assert count(lowered(result), "dot_general") == count(lowered(cell(layer, output_recompute=True)), "dot_general")


def test_invalid_arguments_are_rejected():
    with pytest.raises(TypeError, match="expected a function, or a module of flax or equinox, not int"):
        ms.recompute(3, 4)
    for kind in (ms.Cell, ms.Primitive):
        with pytest.raises(TypeError, match="not str"):
            kind("block")
    with pytest.raises(TypeError, match="use_reentrant must be True or False, not 1"):
        ms.recompute(layer, use_reentrant=1)
    with pytest.raises(TypeError, match="output_recompute must be True or False"):
        ms.recompute(layer, output_recompute="no")
    for name in (
        "mp_comm_recompute",
        "parallel_optimizer_comm_recompute",
        "recompute_slice_activation",
        "output_recompute",
    ):
        with pytest.raises(TypeError, match=f"Cell.recompute: {name} must be True or False, not None"):
            ms.Cell(layer).recompute(**{name: None})
    with pytest.raises(TypeError, match="positional"):
        ms.Cell(layer).recompute(True)
    with pytest.raises(TypeError, match="mode"):
        ms.Primitive(layer).recompute(1)


@pytest.mark.slow
def test_options_for_several_devices_take_effect():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    paths = {"PYTHONPATH": str(ROOT.parent), "PATH": "/usr/bin:/bin"}
    script = [sys.executable, "-m", "recompute.test.unit.frontends.jax.mindspore.on_a_mesh"]
    completed = subprocess.run(script, env=flags | paths, capture_output=True, text=True, timeout=300, check=False)
    assert completed.stdout == "as it should be\n", completed.stderr[-3000:]
