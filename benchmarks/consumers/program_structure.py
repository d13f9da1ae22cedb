"""Steps of unusual structure: odd names, donation, optimizers, nested `jax.checkpoint`, exported functions."""

# pyright: basic

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import export
from jax.ad_checkpoint import checkpoint_name
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.consumers.case import (
    BATCH,
    WIDTH,
    Around,
    case,
    descend,
    layer,
    mean_square,
    mesh,
    normal,
    run_blocks,
    weights,
    weights_and_batch,
)


def _adam() -> tuple[Any, ...]:
    return weights(), _OPTIMIZER.init(weights()), normal(9, BATCH, WIDTH)


_OPTIMIZER = optax.chain(
    optax.clip_by_global_norm(1.0),
    optax.scale_by_adam(),
    optax.add_decayed_weights(0.01),
    optax.scale_by_schedule(optax.cosine_decay_schedule(-0.1, 100)),
)


def _optimized(around: Around) -> Any:
    loss = mean_square(around(layer))

    def step(ws: Any, state: Any, x: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(ws, x)
        updates, state = _OPTIMIZER.update(gradient, state, ws)
        return value, optax.apply_updates(ws, updates), state

    return step


case(_adam, "optax_chain")(_optimized)
case(_adam, "donated", jit=lambda: {"donate_argnums": (0, 1)})(_optimized)


@case(weights_and_batch, jit=lambda: {"donate_argnums": (0, 1)})
def aliased_results(around: Around) -> Any:
    """Build a step that donates its arguments, and returns one value twice and an argument unchanged."""
    step = descend(layer, around)

    def twice(ws: Any, x: Any) -> Any:
        value, new = step(ws, x)
        return value, value, new, [new[0], x], x

    return twice


@case(weights_and_batch)
def functions_with_odd_names(around: Around) -> Any:
    """Build a step with private functions whose names need quotes, contain dots, or end in numbers."""

    def named(name: str, function: Any) -> Any:
        function.__name__ = name
        return jax.jit(function)

    sine = named("sin é.wave-1", lambda x: jnp.sin(jnp.exp(jnp.sin(x))))
    main = named("main", lambda x: sine(jnp.tanh(x)))
    first = named("f_1", lambda x: main(x) + 1)
    again = named("f", lambda x: first(sine(x)))
    return descend(lambda w, x: again(x @ w) * main(x), around)


@case(weights_and_batch)
def scopes_with_odd_names(around: Around) -> Any:
    """Build a step whose scope names contain quotes, control characters and slashes."""

    def loss(ws: Any, x: Any) -> Any:
        for name, w in zip(('a "quoted" one', "tab\tand\\back", "über/jvp(x) {b}"), ws, strict=True):
            with jax.named_scope(name):
                x = around(layer)(w, x)
        return jnp.mean(x**2)

    return jax.value_and_grad(loss)


@case(weights_and_batch, twin=False)
def checkpoints_inside(around: Around) -> Any:
    """Build a step with nested `jax.checkpoint` and two policies in some of its blocks."""
    policies = jax.checkpoint_policies

    def inner(w: Any, x: Any) -> Any:
        return checkpoint_name(jnp.sin(jnp.exp(jnp.sin(x @ w))), "inner")

    def outer(w: Any, x: Any) -> Any:
        save_inner = jax.checkpoint(inner, policy=policies.save_only_these_names("inner"))
        return jnp.tanh(save_inner(w, layer(w, x)))

    blocks = [jax.checkpoint(layer, policy=policies.dots_saveable), jax.checkpoint(outer), layer]

    def loss(ws: Any, x: Any) -> Any:
        for index, w in enumerate(ws):
            with jax.named_scope(f"block{index}"):
                x = blocks[index](w, x)
        return jnp.mean(x**2)

    return jax.value_and_grad(loss)


@case(weights_and_batch)
def exported_inside(around: Around) -> Any:
    """Build a step whose blocks call a function exported with `jax.export`, and its exported gradient."""
    shapes = (jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32), jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32))
    called = export.export(jax.jit(layer))(*shapes).call
    return descend(lambda w, x: jnp.sin(jnp.exp(jnp.sin(called(w, x)))), around)


@case(weights_and_batch)
def nested_jit(around: Around) -> Any:
    """Build a step with nested jitted functions that several blocks call, one of them with a constant."""
    scale = jnp.arange(float(WIDTH))
    inner = jax.jit(lambda x: jnp.sin(jnp.exp(jnp.sin(x))) * scale)
    outer = jax.jit(lambda w, x: jnp.tanh(inner(x @ w)) + inner(x))
    return descend(outer, around)


@case(weights_and_batch)
def inner_shardings(around: Around) -> Any:
    """Build a step whose blocks call jitted functions with their own shardings."""
    rows = NamedSharding(mesh(), P("d"))
    inner = jax.jit(lambda x: jnp.sin(jnp.exp(jnp.sin(x))), in_shardings=rows, out_shardings=rows)
    return descend(lambda w, x: jnp.tanh(inner(inner(x @ w))), around)


@case(weights_and_batch)
def metadata_of_xla(around: Around) -> Any:
    """Build a step whose operations and calls have frontend attributes."""
    inner = jax.jit(lambda x: jnp.sin(jnp.exp(jnp.sin(x))))

    def block(w: Any, x: Any) -> Any:
        with set_xla_metadata(inlineable="false", my_hint="a"):
            return jnp.tanh(inner(x @ w))

    return descend(block, around)


@case(weights_and_batch, twin=False)
def composite(around: Around) -> Any:
    """Build a step with `jax.lax.composite`, an operation that refers to its decomposition."""
    act = jax.lax.composite(lambda x: jnp.sin(jnp.exp(jnp.sin(x))), name="my.act")
    named = jax.custom_vjp(act)
    named.defvjp(lambda x: (act(x), x), lambda x, g: (g * jnp.cos(x),))
    return descend(lambda w, x: named(x @ w) * jnp.tanh(x), around)


@case(weights_and_batch, twin=False)
def two_gradients(around: Around) -> Any:
    """Build a step that takes two gradients one after the other."""
    loss = mean_square(layer)

    def step(ws: Any, x: Any) -> Any:
        for _ in range(2):
            ws = jax.tree.map(lambda w, g: w - 0.1 * g, ws, jax.grad(loss)(ws, x))
        return ws

    return step


@case(weights_and_batch)
def gradient_of_gradient(around: Around) -> Any:
    """Build a step whose loss contains the derivative of the network with respect to its input."""

    def net(ws: Any, x: Any) -> Any:
        return run_blocks(around(layer), ws, x).sum()

    def loss(ws: Any, x: Any) -> Any:
        value, slope = jax.value_and_grad(net, 1)(ws, x)
        return value + jnp.mean(slope**2)

    return jax.value_and_grad(loss)
