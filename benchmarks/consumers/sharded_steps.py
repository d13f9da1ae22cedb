"""Steps over two devices, with collectives in `shard_map` or with shardings, for both partitioners."""

# pyright: basic

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from recompute.benchmarks.consumers.case import (
    BATCH,
    WIDTH,
    Around,
    case,
    layer,
    mean_square,
    mesh,
    normal,
    run_blocks,
    scanned,
    stacked_weights_and_batch,
    weights,
    weights_and_batch,
)

WHOLE, HALVES = P(), P("d")


def mapped(block: Any, around: Around, weight: Any = WHOLE, data: Any = HALVES) -> Any:
    """Build a step that runs the blocks inside a `shard_map`, and computes the loss outside of it."""

    def loss(ws: Any, x: Any) -> Any:
        def net(ws: Any, x: Any) -> Any:
            return run_blocks(around(block), ws, x)

        specs = jax.tree.map(lambda _: weight, ws)
        y = jax.shard_map(net, mesh=mesh(), in_specs=(specs, data), out_specs=data, check_vma=False)(ws, x)
        return jnp.mean(y**2)

    return jax.value_and_grad(loss)


def _psum(w: Any, x: Any) -> Any:
    return layer(w, x) + jnp.sin(lax.psum(x.mean(), "d"))


for _name, _options in {
    "psum": {},
    "psum_gspmd": {"shardy": False},
}.items():
    case(weights_and_batch, _name, **_options)(lambda around: mapped(_psum, around))


def _blocks_around_a_map(around: Around) -> Any:
    """Build a step with blocks before a `shard_map`, and the loss after it."""

    def loss(ws: Any, x: Any) -> Any:
        x = run_blocks(around(layer), ws, x)
        body = jax.shard_map(_psum, mesh=mesh(), in_specs=(P(), P("d")), out_specs=P("d"), check_vma=False)
        return jnp.mean(body(ws[0], x) ** 2)

    return jax.value_and_grad(loss)


case(weights_and_batch, "blocks_around_a_map")(_blocks_around_a_map)
case(weights_and_batch, "blocks_around_a_map_round_trip", round_trip="shardy", twin=False)(_blocks_around_a_map)
case(weights_and_batch, "blocks_around_a_map_stay", round_trip="stay", twin=False)(_blocks_around_a_map)
case(weights_and_batch, "blocks_around_a_map_gspmd", shardy=False)(_blocks_around_a_map)
case(weights_and_batch, "blocks_around_a_map_inlinable", shardy=False, round_trip="inlinable", twin=False)(
    _blocks_around_a_map
)


@case(weights_and_batch)
def gather_and_scatter(around: Around) -> Any:
    """Build a step that gathers sharded weights in each block, and scatters their gradients."""

    def block(w: Any, x: Any) -> Any:
        return layer(lax.all_gather(w, "d", tiled=True), x)

    return mapped(block, around, weight=P("d"))


@case(weights_and_batch)
def sum_and_scatter(around: Around) -> Any:
    """Build a step that scatters the sum of a sharded contraction over the rows, and gathers it again."""

    def block(w: Any, x: Any) -> Any:
        part = jnp.sin(lax.psum_scatter(x @ w, "d", scatter_dimension=0, tiled=True))
        return jnp.tanh(jnp.exp(jnp.sin(lax.all_gather(part, "d", tiled=True))))

    return mapped(block, around)


@case(weights_and_batch)
def ring(around: Around) -> Any:
    """Build a step in which each device reads its neighbour's input of the block."""

    def block(w: Any, x: Any) -> Any:
        other = lax.ppermute(jnp.sin(x), "d", [(0, 1), (1, 0)])
        return layer(w, x + other)

    return mapped(block, around)


@case(weights_and_batch)
def transposed(around: Around) -> Any:
    """Build a step with an `all_to_all` along each of two axes."""

    def block(w: Any, x: Any) -> Any:
        turned = lax.all_to_all(jnp.sin(jnp.exp(jnp.sin(x @ w))), "d", 1, 0, tiled=True)
        return lax.all_to_all(jnp.tanh(turned), "d", 0, 1, tiled=True)

    return mapped(block, around)


def _map_in_scan(around: Around) -> Any:
    body = jax.shard_map(_psum, mesh=mesh(), in_specs=(P(), P("d")), out_specs=P("d"), check_vma=False)
    return scanned(around(body))


case(stacked_weights_and_batch, "map_in_scan")(_map_in_scan)
case(stacked_weights_and_batch, "map_in_scan_round_trip", round_trip="shardy", twin=False)(_map_in_scan)


def _scan_in_map(around: Around) -> Any:
    def loss(ws: Any, x: Any) -> Any:
        def net(ws: Any, x: Any) -> Any:
            return lax.scan(lambda x, w: (around(_psum)(w, x), None), x, ws)[0]

        y = jax.shard_map(net, mesh=mesh(), in_specs=(P(), P("d")), out_specs=P("d"), check_vma=False)(ws, x)
        return jnp.mean(y**2)

    return jax.value_and_grad(loss)


case(stacked_weights_and_batch, "scan_in_map")(_scan_in_map)
case(stacked_weights_and_batch, "scan_in_map_gspmd", shardy=False)(_scan_in_map)


@case(weights_and_batch)
def map_in_map(around: Around) -> Any:
    """Build a step with a `shard_map` over one axis inside a `shard_map` over another axis."""

    def loss(ws: Any, x: Any) -> Any:
        def inner(w: Any, x: Any) -> Any:
            return layer(w, x) + lax.psum(x.mean(), "m")

        def net(ws: Any, x: Any) -> Any:
            for index, w in enumerate(ws):
                with jax.named_scope(f"block{index}"):
                    body = jax.shard_map(
                        inner, in_specs=(P(), P("m")), out_specs=P("m"), axis_names={"m"}, check_vma=False
                    )
                    x = around(body)(w, x) + lax.psum(x.mean(), "d")
            return x

        devices = mesh(2, 1, names="dm")
        y = jax.shard_map(
            net, mesh=devices, in_specs=(P(), P("d")), out_specs=P("d"), axis_names={"d"}, check_vma=False
        )(ws, x)
        return jnp.mean(y**2)

    return jax.value_and_grad(loss)


@case(weights_and_batch)
def callback_in_map(around: Around) -> Any:
    """Build a step with a host callback inside a `shard_map`."""

    def block(w: Any, x: Any) -> Any:
        y = layer(w, x)
        jax.debug.callback(lambda _: None, y.mean())
        return y + jnp.sin(lax.pmean(y, "d"))

    return mapped(block, around)


@case(weights_and_batch)
def cond_in_map(around: Around) -> Any:
    """Build a step with a collective in a branch, and with a branch that depends on the device index."""

    def block(w: Any, x: Any) -> Any:
        y = lax.cond(
            lax.psum(lax.stop_gradient(x.max()), "d") > 0,
            lambda y: jnp.sin(lax.psum(y, "d")),
            jnp.sin,
            jnp.exp(jnp.sin(x @ w)),
        )
        return lax.switch(lax.axis_index("d"), [jnp.tanh, jnp.sin], y)

    return mapped(block, around)


@case(weights_and_batch)
def gradient_in_map(around: Around) -> Any:
    """Build a step that runs entirely inside a `shard_map`, and averages gradients over the devices."""

    def step(ws: Any, x: Any) -> Any:
        loss = mean_square(around(layer))

        def net(ws: Any, x: Any) -> Any:
            value, gradient = jax.value_and_grad(loss)(ws, x)
            value, gradient = lax.pmean((value, gradient), "d")
            return value, jax.tree.map(lambda w, g: w - 0.1 * g, ws, gradient)

        out = (P(), [P()] * len(ws))
        return jax.shard_map(net, mesh=mesh(), in_specs=(P(), P("d")), out_specs=out, check_vma=False)(ws, x)

    return step


def constrained(x: Any, *axes: Any) -> Any:
    """Return the value with a sharding constraint on its axes."""
    return lax.with_sharding_constraint(x, NamedSharding(mesh(), P(*axes)))


def _with_constraints(around: Around) -> Any:
    def block(w: Any, x: Any) -> Any:
        h = constrained(jnp.sin(x @ w), "d", None)
        return constrained(jnp.tanh(jnp.exp(jnp.sin(h))), None, "d")

    return jax.value_and_grad(mean_square(around(block)))


case(weights_and_batch, "constraints")(_with_constraints)
case(weights_and_batch, "constraints_gspmd", shardy=False)(_with_constraints)


def _constraint_in_scan(around: Around) -> Any:
    def body(w: Any, x: Any) -> Any:
        return jnp.tanh(jnp.exp(jnp.sin(constrained(jnp.sin(x @ w), "d", None))))

    return scanned(around(body))


case(stacked_weights_and_batch, "constraint_in_scan")(_constraint_in_scan)
case(stacked_weights_and_batch, "constraint_in_scan_gspmd", shardy=False)(_constraint_in_scan)


def _sharded() -> dict[str, Any]:
    rows, whole = NamedSharding(mesh(), P("d")), NamedSharding(mesh(), P(None, "d"))
    return {"in_shardings": ([whole] * 3, rows), "out_shardings": (None, [whole] * 3)}


def _data_and_model(around: Around) -> Any:
    loss = mean_square(around(layer))

    def step(ws: Any, x: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(ws, x)
        return value, jax.tree.map(lambda w, g: w - 0.1 * g, ws, gradient)

    return step


case(weights_and_batch, "in_and_out_shardings", jit=_sharded)(_data_and_model)
case(weights_and_batch, "donated_and_sharded", jit=lambda: {**_sharded(), "donate_argnums": 0})(_data_and_model)
case(weights_and_batch, "in_and_out_shardings_gspmd", shardy=False, jit=_sharded)(_data_and_model)


@case(lambda: (weights(2), normal(9, BATCH, WIDTH)))
def private_function_per_device(around: Around) -> Any:
    """Build a step that calls a jitted function twice inside a `shard_map`."""
    half = jax.jit(lambda x: jnp.sin(jnp.exp(jnp.sin(x))))

    def block(w: Any, x: Any) -> Any:
        return half(half(x @ w)) + lax.pmean(x, "d")

    return mapped(block, around)
