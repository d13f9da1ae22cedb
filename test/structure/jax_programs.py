"""Programs lowered by JAX: `lowered(name)` returns the text with locations."""

# JAX types few of its functions.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

VECTOR = jax.ShapeDtypeStruct((8,), jnp.float32)
MATRIX = jax.ShapeDtypeStruct((4, 8), jnp.float32)
SQUARE = jax.ShapeDtypeStruct((8, 8), jnp.float32)
HALF = jax.ShapeDtypeStruct((4, 8), jnp.bfloat16)
INDICES = jax.ShapeDtypeStruct((3, 1), jnp.int32)
KEY = jax.ShapeDtypeStruct((2,), jnp.uint32)
IMAGE = jax.ShapeDtypeStruct((1, 6, 6, 2), jnp.float32)
FILTER = jax.ShapeDtypeStruct((3, 3, 2, 2), jnp.float32)
NUMBER = jax.ShapeDtypeStruct((), jnp.float32)
MESH = AbstractMesh((2, 2), ("x", "y"))


def mlp(w: Any, v: Any, x: Any) -> Any:
    with jax.named_scope("layer"):
        h = jnp.tanh(x @ w)
    return jnp.sum((h @ v) ** 2)


def scan(w: Any, xs: Any) -> Any:
    def body(carry: Any, x: Any) -> Any:
        carry = jnp.tanh(carry @ w + x)
        return carry, carry.sum()

    return lax.scan(body, xs[0], xs)


def cond(flag: Any, x: Any) -> Any:
    return lax.cond(flag > 0, lambda y: jnp.sin(y) * 2, lambda y: jnp.cos(y) - 1, x)


def switch(index: Any, x: Any) -> Any:
    return lax.switch(index.astype(jnp.int32), [jnp.exp, jnp.log1p, lambda y: y + 1], x)


def loop(x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.5 + x), (0, x))


def dropout(key: Any, x: Any) -> Any:
    keep = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, x.shape)
    return jnp.where(keep, x / 0.9, 0)


def bits(x: Any) -> Any:
    return lax.rng_bit_generator(x.astype(jnp.uint32)[:4], (5,))


def ordered(x: Any) -> Any:
    return lax.sort((x, -x), num_keys=1), lax.top_k(x, 3), jnp.argsort(x)


def table(x: Any, at: Any) -> Any:
    rows = x[at[:, 0]]
    return rows, x.at[at[:, 0]].add(rows * 2), lax.dynamic_slice(x, (at[0, 0], 0), (2, 4))


def convolution(image: Any, kernel: Any) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=numbers)
    return lax.reduce_window(jax.nn.relu(y), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def spectrum(x: Any) -> Any:
    return jnp.abs(jnp.fft.rfft(x)), jnp.real(jnp.fft.ifft(x + 1j))


@jax.custom_jvp
def clipped(x: Any) -> Any:
    return jnp.clip(x, -1, 1)


@clipped.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return clipped(primals[0]), tangents[0] * 0.5


@jax.jit
def twice(x: Any) -> Any:
    return clipped(x) * 2


@jax.jit
def nested(x: Any) -> Any:
    return twice(twice(x) + 1)


def calls(x: Any) -> Any:
    return jax.value_and_grad(lambda y: nested(y).sum() + twice(y).sum())(x)


def checkpoint(w: Any, x: Any) -> Any:
    block = jax.checkpoint(lambda y: jnp.sin(jnp.tanh(y @ w)))
    return jax.grad(lambda y: block(block(y)).sum())(x)


def sharded(x: Any) -> Any:
    body = partial(jax.shard_map, mesh=MESH, in_specs=PartitionSpec("x"), out_specs=PartitionSpec())
    return body(lambda y: lax.psum(jnp.sin(y), "x"))(x)


def constrained(x: Any) -> Any:
    y = lax.with_sharding_constraint(jnp.sin(x), NamedSharding(MESH, PartitionSpec("x", None)))
    return y @ y.T


def update(w: Any, g: Any) -> Any:
    return w - 0.1 * g, (g**2).mean()


def half(x: Any) -> Any:
    return jax.nn.softmax(x.astype(jnp.float32)).astype(jnp.bfloat16), lax.reduce_precision(x, 5, 3)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mlp": (jax.value_and_grad(mlp, (0, 1)), (SQUARE, SQUARE, MATRIX)),
    "scan": (scan, (SQUARE, MATRIX)),
    "cond": (cond, (NUMBER, VECTOR)),
    "switch": (switch, (NUMBER, VECTOR)),
    "loop": (loop, (VECTOR,)),
    "dropout": (dropout, (KEY, VECTOR)),
    "bits": (bits, (VECTOR,)),
    "ordered": (ordered, (VECTOR,)),
    "table": (table, (SQUARE, INDICES)),
    "convolution": (convolution, (IMAGE, FILTER)),
    "spectrum": (spectrum, (VECTOR,)),
    "calls": (calls, (VECTOR,)),
    "checkpoint": (checkpoint, (SQUARE, MATRIX)),
    "sharded": (sharded, (MATRIX,)),
    "constrained": (constrained, (MATRIX,)),
    "update": (update, (VECTOR, VECTOR)),
    "half": (half, (HALF,)),
}
DONATED = {"update": 0}


def lowered(name: str) -> str:
    """Return a program as StableHLO. The devices of its mesh need not exist."""
    function, arguments = PROGRAMS[name]
    donated = (DONATED[name],) if name in DONATED else ()
    traced = jax.jit(function, donate_argnums=donated).trace(*arguments)
    return traced.lower(lowering_platforms=("cpu",)).as_text(debug_info=True)
