"""The model `xla` keeps or copies loop carries as the allocation of XLA:CPU does."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from recompute.analysis.memory.xla.memory import xla_timeline
from recompute.analysis.step.order import functions_of
from recompute.mlir_io.parser import parse_module
from recompute.transforms.inline import inline

pytest.importorskip("jax")

from recompute.examples.with_jax import compile_keeping_barriers
from recompute.test.unit.frontends.jax.steps import jax, jnp, temporaries

lax = jax.lax

ONE = jax.ShapeDtypeStruct((256, 256), jnp.float32)
BYTES = 256 * 256 * 4
Body = Callable[..., tuple[Any, ...]]


def loop(body: Body, *start: Any) -> Any:
    return lax.fori_loop(0, 5, lambda _, carried: body(*carried), start)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "written over element by element": lambda x, y: loop(lambda a: (-a,), x),
    "a product is made beside what it reads": lambda x, y: loop(lambda a: (a @ a,), x),
    "swapped": lambda x, y: loop(lambda a, b: (b, a), x, y),
    "handed on": lambda x, y: loop(lambda a, b: (b, a @ b), x, y),
    "begins with one value three times": lambda x, y: loop(lambda a, b, c: (a @ b, b + 1, c * b), *[x @ x] * 3)[0],
    "not changed": lambda x, y: loop(lambda a, b: (a @ b, b), x @ y, y @ y)[0],
    "read again when the new value is made": lambda x, y: loop(lambda a: (a + jnp.tanh(a @ y) @ y,), x @ y)[0].sum(),
    "a sum": lambda x, y: loop(lambda a, b: (a + (x + b) @ y, b + 1), jnp.zeros_like(x), 0.0)[0].sum(),
    "zeros twice": lambda x, y: loop(lambda a, b: (a + x @ y, b @ y + x), *[jnp.zeros_like(x)] * 2)[0].sum(),
    "zeros in two loops": lambda x, y: loop(lambda a: (a @ x,), loop(lambda a: (a @ y,), 0 * x)[0] + 0 * x)[0].sum(),
}


def both(step: Callable[..., Any], *arguments: Any) -> tuple[int, int]:
    """Return the bytes of temporaries according to the model and to XLA."""
    lowered = jax.jit(step).lower(*arguments)
    module = parse_module(lowered.as_text(debug_info=True))
    inline(module)
    (function,) = functions_of(module)
    return xla_timeline(function).peak_bytes, temporaries(compile_keeping_barriers(lowered))


@pytest.mark.parametrize("name", PROGRAMS)
def test_loop_carry_bytes_match_xla(name: str) -> None:
    model, xla = both(PROGRAMS[name], ONE, ONE)
    assert round(model / BYTES, 2) == round(xla / BYTES, 2)


def layer(x: Any, weights: Any) -> Any:
    return x + jnp.tanh(x @ weights["in"]) @ weights["out"]


def mean_square(weights: Any, x: Any) -> Any:
    return (lax.scan(lambda carry, item: (layer(carry, item), None), x, weights)[0] ** 2).mean()


def grouped(weights: Any, x: Any) -> Any:
    """Compute a scan of scans."""
    groups = jax.tree.map(lambda item: item.reshape(2, 4, *item.shape[1:]), weights)
    return (
        lax.scan(lambda carry, item: (lax.scan(lambda c, w: (layer(c, w), None), carry, item)[0], None), x, groups)[0]
        ** 2
    ).mean()


def accumulated(weights: Any, batches: Any) -> Any:
    """Sum gradients through a scan over layers, one for each microbatch."""

    def add(total: Any, batch: Any) -> Any:
        return jax.tree.map(jnp.add, total, jax.grad(mean_square)(weights, batch)), None

    total, _ = lax.scan(add, jax.tree.map(jnp.zeros_like, weights), batches)
    return jax.tree.map(lambda item, change: item - 0.1 * change, weights, total)


WEIGHTS = {
    "in": jax.ShapeDtypeStruct((8, 64, 256), jnp.float32),
    "out": jax.ShapeDtypeStruct((8, 256, 64), jnp.float32),
}
X = jax.ShapeDtypeStruct((512, 64), jnp.float32)
STEPS = {
    "layers": (jax.value_and_grad(mean_square), X),
    "a scan of scans": (jax.value_and_grad(grouped), X),
    "accumulated": (accumulated, jax.ShapeDtypeStruct((4, 512, 64), jnp.float32)),
}


@pytest.mark.parametrize("name", STEPS)
def test_gradients_of_scans_need_bytes_close_to_xla(name: str) -> None:
    step, x = STEPS[name]
    model, xla = both(step, WEIGHTS, x)
    assert model == pytest.approx(xla, rel=0.1)
