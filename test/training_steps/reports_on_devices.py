"""Reports of steps on eight devices; `test_shard_map.py` runs this in a process of its own."""

# pyright: basic

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import recompute
from recompute.frontends.jax.compilation.variants import Variant
from recompute.frontends.jax.internals import private
from recompute.frontends.jax.reports import device_part as per_device
from recompute.reports.by_module import OUTSIDE

DEVICES, LAYERS, ROWS, WIDTH, HIDDEN = 8, 3, 256, 16, 64
Spec = PartitionSpec


def loss(weights: Any, x: Any) -> Any:
    for index, (up, down) in enumerate(weights):
        with recompute.jax.block(f"block{index}"):
            x = x + jnp.tanh(jnp.sin(x @ up)) @ down
    return jnp.mean(x**2)


def placed(mesh: Mesh, rows: int = ROWS * DEVICES) -> tuple[Any, Any]:
    draw = np.random.default_rng(0)

    def put(spec: PartitionSpec, *shape: int) -> Any:
        return jax.device_put(draw.normal(0, 0.1, shape).astype(np.float32), NamedSharding(mesh, spec))

    weights = [(put(Spec(), WIDTH, HIDDEN), put(Spec(), HIDDEN, WIDTH)) for _ in range(LAYERS)]
    return weights, put(Spec("data"), rows, WIDTH)


def check(step: Callable[..., Any], arguments: tuple[Any, ...], of_model: float = 0.25) -> None:
    """Require that all bytes are those of one device, and that each block has its row.

    `of_model`: the error of the predicted peak that is allowed."""
    jitted = recompute.jax.jit(step)
    report, explanations = jitted.report(*arguments), jitted.explain(*arguments)
    explanation = explanations[-1]
    note = f"bytes and FLOPs: per device, of {DEVICES} devices"
    assert report.devices == DEVICES and report.stored.is_per_device
    assert note in str(report).splitlines() and explanations.note == note and str(explanations).endswith(note)
    assert "of temporaries per device" in str(report).splitlines()[0]
    rows = {row.module: row for row in report.modules}
    assert {f"block{index}" for index in range(LAYERS)} <= rows.keys()
    # Outside the blocks is only the derivative of the loss by the last block.
    assert OUTSIDE not in rows or rows[OUTSIDE].plain_bytes <= ROWS * WIDTH * 4, rows
    hidden = ROWS * HIDDEN * 4
    assert all(hidden <= rows[f"block{index}"].recomputed_bytes <= 2 * hidden for index in range(LAYERS - 1)), rows
    plain, less = report.plain.temporaries, report.chosen.temporaries
    assert plain is not None and less is not None
    assert sum(value.bytes for value in report.kept) < less
    assert explanation.saved_bytes < 2 * plain
    if of_model:
        for temporaries, (_, timeline) in zip((plain, less), report.timelines[:2], strict=True):
            assert abs(timeline.peak_bytes / temporaries - 1) < of_model, (timeline.peak_bytes, temporaries)


def main() -> None:
    mesh = Mesh(np.array(jax.devices()), ("data",))
    check(jax.value_and_grad(loss), placed(mesh))
    explicit = jax.make_mesh((DEVICES,), ("data",), axis_types=(AxisType.Explicit,))
    check(jax.value_and_grad(loss), placed(explicit))
    loop(explicit)
    replicated(explicit)
    on_devices = partial(jax.shard_map, mesh=mesh, in_specs=(Spec(), Spec("data")))

    @partial(on_devices, out_specs=Spec())
    def gradient_inside(weights: Any, x: Any) -> Any:
        return jax.lax.pmean(jax.grad(loss)(weights, x), "data")

    check(gradient_inside, placed(mesh), 0.0)
    inside = partial(on_devices, out_specs=Spec())(lambda weights, x: jax.lax.pmean(loss(weights, x), "data"))
    check(jax.value_and_grad(inside), placed(mesh), 0.0)
    of_whole_arrays(mesh)
    within(mesh)


def replicated(mesh: Mesh) -> None:
    """The plain step runs if what is recomputed is a small part of the replicated arrays on each device."""
    weights, x = placed(mesh, 8 * DEVICES)

    def step(weights: Any, x: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(weights, x)
        return value, jax.tree.map(
            lambda weight, change: weight - jnp.tanh(change @ change.T) @ weight, weights, gradient
        )

    jitted = recompute.jax.jit(step)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jitted(weights, x)
    assert any(issubclass(warning.category, recompute.jax.NothingSaved) for warning in caught)
    assert jitted.report(weights, x).variant is Variant.PLAIN


def loop(mesh: Mesh) -> None:
    """A scan on a mesh with explicit axes is recomputed, although JAX constrains its counter and its stacks."""
    weights, x = placed(mesh)
    stacked = jax.tree.map(lambda *layers: jnp.stack(layers), *weights)

    def scanned(stacked: Any, x: Any) -> Any:
        def layer(x: Any, w: Any) -> Any:
            return x + jnp.tanh(jnp.sin(x @ w[0])) @ w[1], None

        return jnp.mean(jax.lax.scan(layer, x, stacked)[0] ** 2)

    step = jax.value_and_grad(scanned)
    jitted = recompute.jax.jit(step)
    for value, expected in zip(*(jax.tree.leaves(call(stacked, x)) for call in (jitted, jax.jit(step))), strict=True):
        np.testing.assert_array_equal(value, expected)
    report = jitted.report(stacked, x)
    plain, less = report.plain.temporaries, report.chosen.temporaries
    assert plain is not None and less is not None and less < plain / 2


def of_whole_arrays(mesh: Mesh) -> None:
    """Without Shardy's pass the bytes of values are those of whole arrays, as a line states."""
    before, private.PROPAGATION = private.PROPAGATION, "sdy-no-such-pass"
    report = recompute.jax.jit(jax.value_and_grad(loss)).report(*placed(mesh))
    assert not report.stored.is_per_device and per_device.whole_bytes(DEVICES)[:40] in str(report)
    assert report.modules[0].recomputed_bytes >= DEVICES * ROWS * HIDDEN * 4
    private.PROPAGATION = before


def within(mesh: Mesh) -> None:
    """The verdict of a budget is per device, too."""
    report = recompute.jax.explain(jax.value_and_grad(loss), *placed(mesh), budget="500KiB")
    assert str(report).startswith("fits: needs ") and " of 500.0 KiB per device; the plain" in str(report)


if __name__ == "__main__":
    main()
    print("all as expected")
