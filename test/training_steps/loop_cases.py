"""Losses of layers in loops, plain or with `jax.checkpoint` around the body. Import this only if JAX is installed."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from recompute.test.unit.frontends.jax.steps import jax, jnp

Step = Callable[..., Any]
Around = Callable[[Step], Step]
LAYERS, WIDTH, ROWS = 16, 64, 256


def arguments() -> tuple[Any, Any]:
    """Return the weights of all layers, (LAYERS, WIDTH, WIDTH), and a batch, (ROWS, WIDTH)."""
    w, x = jax.random.split(jax.random.key(0))
    return jax.random.normal(w, (LAYERS, WIDTH, WIDTH)) * 0.2, jax.random.normal(x, (ROWS, WIDTH))


def bend(h: Any) -> Any:
    return jnp.tanh(jnp.sin(h) * jnp.cos(h)) + jnp.exp(-h * h)


def _scan(around: Around, body: Step, x: Any, xs: Any, **options: Any) -> Any:
    return jax.lax.scan(around(body), x, xs, **options)


def layers(around: Around, w: Any, x: Any, **options: Any) -> Any:
    return _scan(around, lambda h, w: (bend(h @ w), None), x, w, **options)[0].sum()


def with_index(around: Around, w: Any, x: Any) -> Any:
    def body(h: Any, each: Any) -> Any:
        index, w = each
        return bend(h @ w) * (1 + 0.1 * index.astype(h.dtype)), None

    return _scan(around, body, x, (jnp.arange(LAYERS), w))[0].sum()


def counted(around: Around, w: Any, x: Any) -> Any:
    def body(index: Any, h: Any) -> Any:
        return around(lambda h: bend(h @ w[index]) * (1 + 0.01 * index))(h)

    return jax.lax.fori_loop(0, LAYERS, body, x).sum()


def several_outputs(around: Around, w: Any, x: Any) -> Any:
    """Loop that returns stacks of floats and of booleans."""

    def body(h: Any, w: Any) -> Any:
        h = bend(h @ w)
        return h, (h.sum(), h > 0)

    h, (sums, signs) = _scan(around, body, x, w)
    return h.sum() + (sums * jnp.arange(LAYERS)).sum() + jnp.where(signs, 1.0, 2.0).sum()


def with_keys(around: Around, w: Any, x: Any, kind: str = "threefry2x32") -> Any:
    """Loop that splits its key in the body."""

    def body(carry: Any, w: Any) -> Any:
        h, key = carry
        key, own = jax.random.split(key)
        return (jnp.where(jax.random.bernoulli(own, 0.8, h.shape), bend(h @ w), 0.0), key), None

    return _scan(around, body, (x, jax.random.key(3, impl=kind)), w)[0][0].sum()


def one_after_the_other(around: Around, w: Any, x: Any) -> Any:
    """Two loops, the second of which continues with the first one's key, which calls in it read."""

    def body(carry: Any, w: Any) -> Any:
        h, key = carry
        key, own = jax.random.split(key)
        return (jnp.where(jax.random.bernoulli(own, 0.8, h.shape), bend(h @ w), 0.0), key), None

    carry = x, jax.random.key(3)
    for _ in range(2):
        carry = _scan(around, body, carry, w)[0]
    return carry[0].sum()


def with_condition(around: Around, w: Any, x: Any) -> Any:
    def body(h: Any, each: Any) -> Any:
        index, w = each
        return jax.lax.cond(index % 2 == 0, lambda h: bend(h @ w), lambda h: jnp.sin(h @ w) * h, h), None

    return _scan(around, body, x, (jnp.arange(LAYERS), w))[0].sum()


def in_one_another(around: Around, w: Any, x: Any) -> Any:
    def body(h: Any, w: Any) -> Any:
        return jnp.sin(_scan(around, lambda h, w: (bend(h @ w), None), h, w)[0]), None

    return _scan(around, body, x, w.reshape(4, 4, WIDTH, WIDTH))[0].sum()


def in_two_types(around: Around, w: Any, x: Any) -> Any:
    """Loop with products in bf16 and a carry in f32."""

    def body(h: Any, w: Any) -> Any:
        return bend(h.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32) + h, None

    return _scan(around, body, x, w)[0].sum()


def large_carry(around: Around, w: Any, x: Any) -> Any:
    """Loop of whose carry the gradient needs only a quarter."""

    def body(h: Any, w: Any) -> Any:
        return jnp.concatenate([bend(h[:, :16] @ w[:16, :16]), h[:, 16:]], 1), None

    return _scan(around, body, x, w)[0].sum()


def accumulated(around: Around, w: Any, batches: Any) -> Any:
    """Step that sums the gradients of four batches in a loop, each through layers in a loop."""

    def body(total: Any, x: Any) -> Any:
        loss, gradient = jax.value_and_grad(partial(layers, around))(w, x)
        return total + gradient, loss

    return jax.lax.scan(body, jnp.zeros_like(w), batches.reshape(4, ROWS // 4, WIDTH))


LOSSES: dict[str, Step] = {
    "layers": layers,
    "reversed": partial(layers, reverse=True),
    "with_index": with_index,
    "counted": counted,
    "several_outputs": several_outputs,
    "with_keys": with_keys,
    "with_keys_rbg": partial(with_keys, kind="rbg"),
    "one_after_the_other": one_after_the_other,
    "with_condition": with_condition,
    "in_one_another": in_one_another,
    "in_two_types": in_two_types,
    "large_carry": large_carry,
    "unrolled": partial(layers, unroll=4),
}


def step_of(name: str, around: Around) -> Step:
    """Return the step that computes loss and gradients."""
    if name == "accumulated":
        return partial(accumulated, around)
    return jax.value_and_grad(partial(LOSSES[name], around))
