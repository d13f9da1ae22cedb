"""Small steps with varied loops, lowered by JAX. Import this only if JAX is installed."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

LAYERS, WIDTH, ROWS = 4, 3, 2
Loss = Callable[[Any, Any], Any]


def bend(h: Any) -> Any:
    return jnp.sin(h) * jnp.exp(-h * h) + h


def layers(w: Any, x: Any) -> Any:
    return jax.lax.scan(lambda h, w: (bend(h @ w), None), x, w)[0].sum()


def backwards(w: Any, x: Any) -> Any:
    return jax.lax.scan(lambda h, w: (bend(h @ w), h.sum()), x, w, reverse=True)[1].sum()


def unrolled(w: Any, x: Any) -> Any:
    return jax.lax.scan(lambda h, w: (bend(h @ w), None), x, w, unroll=2)[0].sum()


def with_index(w: Any, x: Any) -> Any:
    def body(h: Any, each: Any) -> Any:
        index, w = each
        return bend(h @ w) * (1 + 0.5 * index.astype(h.dtype)), (h > index).sum()

    h, counts = jax.lax.scan(body, x, (jnp.arange(len(w)), w))
    return h.sum() + counts.sum()


def counted(w: Any, x: Any) -> Any:
    return jax.lax.fori_loop(1, len(w), lambda i, h: bend(h @ w[i]) + i * h, x).sum()


def two_carries(w: Any, x: Any) -> Any:
    def body(carry: Any, w: Any) -> Any:
        a, b, n = carry
        c = bend(a @ w)
        return (c + b, c * a, n + 1), a.max()

    (a, b, n), highest = jax.lax.scan(body, (x, jnp.cos(x), 0), w)
    return (a * b).sum() + n + highest.sum()


def in_one_another(w: Any, x: Any) -> Any:
    def body(h: Any, w: Any) -> Any:
        return jnp.sin(jax.lax.scan(lambda h, w: (bend(h @ w), None), h, w)[0]), None

    return jax.lax.scan(body, x, w.reshape(-1, 2, WIDTH, WIDTH))[0].sum()


def with_condition(w: Any, x: Any) -> Any:
    def body(h: Any, each: Any) -> Any:
        index, w = each
        return jax.lax.cond(index % 2 == 0, lambda h: bend(h @ w), lambda h: jnp.cos(h @ w) * h, h), None

    return jax.lax.scan(body, x, (jnp.arange(len(w)), w))[0].sum()


def part_of_the_carry(w: Any, x: Any) -> Any:
    def body(h: Any, w: Any) -> Any:
        return jnp.concatenate([bend(h[:, :2] @ w[:2, :2]), h[:, 2:]], 1), None

    return jax.lax.scan(body, x, w)[0].sum()


def accumulated(w: Any, x: Any) -> Any:
    def body(total: Any, x: Any) -> Any:
        loss, gradient = jax.value_and_grad(layers)(w, x)
        return total + gradient, loss

    return jax.lax.scan(body, jnp.zeros_like(w), jnp.stack([x, jnp.sin(x)]))


LOSSES: tuple[Loss, ...] = (
    layers,
    backwards,
    unrolled,
    with_index,
    counted,
    two_carries,
    in_one_another,
    with_condition,
    part_of_the_carry,
)


def lowered_steps(layers: int = LAYERS) -> dict[str, str]:
    """Return the text of each step with locations, by name. `layers`: an even number of iterations."""
    shapes = jax.ShapeDtypeStruct((layers, WIDTH, WIDTH), jnp.float32), jax.ShapeDtypeStruct((ROWS, WIDTH), jnp.float32)
    steps = {loss.__name__: jax.value_and_grad(loss) for loss in LOSSES} | {"accumulated": accumulated}
    return {name: jax.jit(step).lower(*shapes).as_text(debug_info=True) for name, step in steps.items()}
