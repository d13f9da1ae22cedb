"""Programs of a few operations each, as JAX lowers them, by name; they vary in shape, padding, groups, body and
type."""

# JAX's types say little about lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Program = tuple[Callable[..., Any], Sequence[jax.ShapeDtypeStruct]]


def shape(*extents: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(extents, dtype)


def _convolution(*given: tuple[int, ...], **parameters: Any) -> Program:
    """Return a convolution in one to three dimensions, channels last, with stride 1 and no padding by default."""
    numbers = {3: ("NWC", "WIO", "NWC"), 4: ("NHWC", "HWIO", "NHWC"), 5: ("NDHWC", "DHWIO", "NDHWC")}[len(given[0])]
    spatial = len(given[0]) - 2
    parameters = {"window_strides": (1,) * spatial, "padding": "VALID", "dimension_numbers": numbers, **parameters}
    return partial(lax.conv_general_dilated, **parameters), [shape(*item) for item in given]


CONVOLUTIONS: dict[str, Program] = {
    "as wide as it gets": _convolution((2, 13, 11, 3), (3, 5, 3, 7)),
    "padded": _convolution((2, 6, 6, 4), (5, 5, 4, 8), padding="SAME"),
    "padded unevenly": _convolution((1, 9, 7, 2), (4, 3, 2, 5), padding=((3, 0), (1, 2))),
    "padded less than nothing": _convolution((1, 9, 9, 2), (3, 3, 2, 5), padding=((-1, -2), (0, -1))),
    "strided": _convolution((2, 15, 15, 3), (3, 3, 3, 8), window_strides=(2, 3), padding="SAME"),
    "kernel dilated": _convolution((2, 15, 15, 3), (3, 3, 3, 8), rhs_dilation=(2, 3), padding="SAME"),
    "transposed": _convolution((2, 6, 6, 3), (5, 5, 3, 8), lhs_dilation=(2, 2), padding=((2, 3), (2, 3))),
    "all at once": _convolution(
        (2, 8, 9, 3),
        (4, 3, 3, 8),
        window_strides=(3, 2),
        lhs_dilation=(2, 3),
        rhs_dilation=(3, 4),
        padding=((3, 4), (5, 2)),
    ),
    "feature groups": _convolution((2, 9, 9, 6), (3, 3, 2, 9), feature_group_count=3, padding="SAME"),
    "depthwise": _convolution((2, 9, 9, 6), (3, 3, 1, 6), feature_group_count=6, padding="SAME"),
    "batch groups": _convolution((6, 9, 9, 4), (3, 3, 4, 9), batch_group_count=3, padding="SAME"),
    "one dimension": _convolution((2, 30, 3), (7, 3, 4), padding="SAME"),
    "three dimensions": _convolution((1, 6, 5, 4, 3), (3, 3, 3, 3, 4), padding="SAME"),
    "of one place": _convolution((2, 1, 1, 5), (3, 3, 5, 7), padding="SAME"),
}


def _window(computation: Any, window: tuple[int, ...], **parameters: Any) -> Callable[..., Any]:
    init = -jnp.inf if computation is lax.max else 0.0
    parameters = {"window_strides": (1,) * len(window), "padding": "VALID", **parameters}
    return lambda x: lax.reduce_window(x, init, computation, window, **parameters)


def _norm(x: Any, y: Any) -> Any:
    return lax.sqrt(x * x + y * y)


IMAGE = shape(2, 12, 12, 3)
WINDOWS: dict[str, Program] = {
    "apart": (_window(lax.add, (1, 2, 2, 1), window_strides=(1, 2, 2, 1)), [IMAGE]),
    "overlapping": (_window(lax.add, (1, 3, 3, 1)), [IMAGE]),
    "overlapping and padded": (_window(lax.max, (1, 5, 5, 1), padding="SAME", window_strides=(1, 2, 2, 1)), [IMAGE]),
    "dilated": (_window(lax.add, (1, 3, 3, 1), window_dilation=(1, 2, 2, 1)), [IMAGE]),
    "of a base that is dilated": (_window(lax.add, (1, 3, 3, 1), base_dilation=(1, 2, 2, 1)), [IMAGE]),
    "body of several operations": (_window(_norm, (1, 3, 3, 1)), [IMAGE]),
    "cumulative sum": (partial(lax.cumsum, axis=0), [shape(40, 3)]),
    "reverse cumulative maximum": (partial(lax.cummax, axis=1, reverse=True), [shape(6, 17)]),
    "gradient of pooling": (
        jax.grad(lambda x: _window(lax.max, (1, 3, 3, 1), window_strides=(1, 2, 2, 1))(x).sum()),
        [IMAGE],
    ),
}
TABLE, ROWS = shape(40, 16), shape(9, dtype=jnp.int32)
REDUCTIONS: dict[str, Program] = {
    "rows": (partial(jnp.sum, axis=0), [shape(40, 16)]),
    "all dimensions": (jnp.max, [shape(40, 16)]),
    "argmax": (partial(lax.argmax, axis=1, index_dtype=jnp.int32), [shape(40, 16)]),
    "body of several operations": (lambda x: lax.reduce(x, 0.0, _norm, (1,)), [shape(40, 16)]),
    "two at once": (
        lambda x, y: lax.reduce((x, y), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)),
        [shape(40, 16)] * 2,
    ),
    "any": (partial(jnp.any, axis=1), [shape(40, 16, dtype=jnp.bool_)]),
    "in bf16": (partial(jnp.sum, axis=0), [shape(40, 16, dtype=jnp.bfloat16)]),
}
OTHERS: dict[str, Program] = {
    "dot": (jnp.matmul, [shape(5, 7), shape(7, 9)]),
    "dot in bf16": (jnp.matmul, [shape(5, 7, dtype=jnp.bfloat16), shape(7, 9, dtype=jnp.bfloat16)]),
    "dot in batches": (partial(jnp.einsum, "bhqd,bhkd->bhqk"), [shape(2, 3, 5, 4), shape(2, 3, 6, 4)]),
    "dot over two dimensions": (partial(jnp.tensordot, axes=2), [shape(5, 7, 3), shape(7, 3, 2)]),
    "outer product": (partial(jnp.einsum, "i,j->ij"), [shape(5), shape(7)]),
    "fft": (jnp.fft.fft, [shape(3, 24, dtype=jnp.complex64)]),
    "ifft": (jnp.fft.ifft, [shape(3, 24, dtype=jnp.complex64)]),
    "rfft": (jnp.fft.rfft, [shape(3, 24)]),
    "irfft": (jnp.fft.irfft, [shape(3, 13, dtype=jnp.complex64)]),
    "fft of two dimensions": (jnp.fft.fft2, [shape(3, 8, 24, dtype=jnp.complex64)]),
    "fft of three dimensions": (jnp.fft.rfftn, [shape(8, 4, 16)]),
    "sort": (lambda x: lax.sort(x, dimension=0), [shape(40, 16)]),
    "sort of one row": (lax.sort, [shape(33)]),
    "sort by key": (lambda x, y: lax.sort((x, y), num_keys=1), [shape(40, 16), shape(40, 16, dtype=jnp.int32)]),
    "sort by two keys": (lambda x, y: lax.sort((x, y), num_keys=2), [shape(40, 16)] * 2),
    "top_k": (partial(lax.top_k, k=3), [shape(40, 16)]),
    "gather": (lambda x, i: x.at[i].get(mode="promise_in_bounds"), [TABLE, ROWS]),
    "scatter, add": (lambda x, i, y: x.at[i].add(y, mode="promise_in_bounds"), [TABLE, ROWS, shape(9, 16)]),
    "scatter, multiply": (lambda x, i, y: x.at[i].mul(y, mode="promise_in_bounds"), [TABLE, ROWS, shape(9, 16)]),
    "scatter, replace": (lambda x, i, y: x.at[i].set(y, mode="promise_in_bounds"), [TABLE, ROWS, shape(9, 16)]),
    "dynamic slice": (lambda x, i: lax.dynamic_slice(x, (i, i), (4, 4)), [TABLE, shape(dtype=jnp.int32)]),
    "dynamic update": (lambda x, y: lax.dynamic_update_slice(x, y, (2, 3)), [TABLE, shape(3, 4)]),
    "loop": (lambda x: lax.fori_loop(0, 10, lambda i, v: v * v + x, x), [TABLE]),
    "while loop with a data-dependent condition": (
        lambda x: lax.while_loop(lambda v: jnp.max(v) < 9, lambda v: jnp.exp(v) + 1, x),
        [TABLE],
    ),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c * v), jnp.zeros(16), x), [TABLE]),
    "branches": (lambda p, x: lax.cond(p, jnp.sin, lambda v: v * v + v, x), [shape(dtype=jnp.bool_), TABLE]),
    "one of three": (
        lambda i, x: lax.switch(i, [lambda v: v, lambda v: v @ v.T @ v, jnp.exp], x),
        [shape(dtype=jnp.int32), TABLE],
    ),
    "random bits": (lambda k: lax.rng_bit_generator(k, (40, 16)), [shape(4, dtype=jnp.uint32)]),
    "threefry": (lambda k: jax.random.bits(jax.random.wrap_key_data(k), (40, 16)), [shape(2, dtype=jnp.uint32)]),
    "from bf16": (lambda x: x.astype(jnp.float32), [shape(40, 16, dtype=jnp.bfloat16)]),
    "to integers": (lambda x: x.astype(jnp.int32), [TABLE]),
    "bits of floats": (lambda x: lax.bitcast_convert_type(x, jnp.int32), [TABLE]),
    "clamped": (lambda x, y: lax.clamp(y, x, y), [TABLE, TABLE]),
    "compared": (lambda x, y: lax.select(x < y, x, y), [TABLE, TABLE]),
    "less precise": (partial(lax.reduce_precision, exponent_bits=5, mantissa_bits=7), [TABLE]),
    "transpose, concatenate, pad and reverse": (
        lambda x, z: lax.rev(lax.pad(jnp.concatenate([x, x.T.reshape(40, 16)])[3:], z, [(1, 2, 1), (0, 1, 0)]), [0]),
        [TABLE, shape()],
    ),
    "broadcast and iota": (lambda x: lax.iota(jnp.float32, 40)[:, None] + x, [shape(16)]),
    "optimization barrier": (lambda x: lax.optimization_barrier(jnp.sin(x)) + 1, [TABLE]),
}
PROGRAMS: dict[str, Program] = {
    **{f"convolution, {name}": first for name, first in CONVOLUTIONS.items()},
    **{f"window, {name}": first for name, first in WINDOWS.items()},
    **{f"reduce, {name}": first for name, first in REDUCTIONS.items()},
    **OTHERS,
}
