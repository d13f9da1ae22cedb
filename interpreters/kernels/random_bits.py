"""Kernels of random operations: `stablehlo.rng_bit_generator` and `stablehlo.rng`.

`rng_bit_generator` encrypts counters with a key and returns the same bits as XLA on the CPU. `rng` draws from a hidden
state, and its numbers are implementation-defined.

Source of both ciphers: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
Counters are assigned to elements as in XLA, where DEFAULT is Philox.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...dialects.constants.elements import DType, bit_width
from ...dialects.stablehlo.attributes import RngDistribution
from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.external import RngBitGeneratorOp, RngOp
from .arrays import Array, Kernel, as_owned, dtype_at, kind_of, shape_at

U32, U64 = np.uint32, np.uint64

THREEFRY_PARITY = 0x1BD11BDA
THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
THREEFRY_GROUPS = 5

PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
PHILOX_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
PHILOX_ROUNDS = 10


def rng(op: RngOp, generator: np.random.Generator) -> Kernel:
    """Make the kernel of `stablehlo.rng`, which draws from `generator` each time it runs."""
    shape, dtype = shape_at(op.result), dtype_at(op.result)
    is_normal = op.rng_distribution.data is RngDistribution.NORMAL

    def run(first: Array, second: Array, stated: Array) -> tuple[Array, ...]:
        if list(stated) != list(shape):
            raise ValueError(f"its shape operand is {stated.tolist()}, but its result has shape {list(shape)}")
        if is_normal:
            return (as_owned(generator.normal(float(first), float(second), shape), dtype),)
        return (uniform(generator, first, second, shape, dtype),)

    return run


def uniform(generator: np.random.Generator, low: Array, high: Array, shape: Sequence[int], dtype: DType) -> Array:
    """Return random numbers between `low` (inclusive) and `high` (exclusive). If `low` is not less than `high`, all
    numbers are `low`."""
    if not low < high:
        return np.full(shape, low, dtype)
    if kind_of(dtype) != "f":
        drawn = generator.integers(int(low), int(high), shape, np.uint64 if kind_of(dtype) == "u" else np.int64)
        return as_owned(drawn, dtype)

    def draw(count: int) -> Array:
        return (float(low) + (float(high) - float(low)) * generator.random(count)).astype(dtype)

    numbers = draw(prod(shape))
    # Rounding to the type may yield the upper limit.
    while (outside := numbers >= high).any():
        numbers[outside] = draw(int(outside.sum()))
    return numbers.reshape(shape).copy()


Bits = tuple[Array, Array]
"""The random bits, and the new state."""


def rng_bit_generator(op: RngBitGeneratorOp) -> Kernel:
    make = ALGORITHMS[op.rng_algorithm.data.value]
    shape, dtype = shape_of(op.output), dtype_at(op.output)
    if kind_of(dtype) not in "iuf":
        raise ValueError(f"the interpreter supports random bits only of integer and float types, not {dtype}")
    if dtype_at(op.initial_state) != U64:
        raise ValueError("the elements of its state must have type ui64")
    unsigned = np.dtype(f"u{dtype.itemsize}")
    lowest = (1 << bit_width(dtype)) - 1

    def run(state: Array) -> tuple[Array, ...]:
        bits, new = make(state, shape, dtype.itemsize == 8)
        return new, as_owned((bits & bits.dtype.type(lowest)).astype(unsigned), unsigned).view(dtype)

    return run


def halves(values: Array) -> list[Array]:
    """Return the low and the high 32 bits of 64-bit integers, as two arrays."""
    words = np.asarray(values, U64)
    return [np.asarray(words & U64(0xFFFFFFFF)).astype(U32), np.asarray(words >> U64(32)).astype(U32)]


def join_halves(low: Array, high: Array) -> Array:
    return low.astype(U64) | high.astype(U64) << U64(32)


def three_fry(state: Array, shape: Sequence[int], wide: bool) -> Bits:
    """Return random bits of the generator Threefry, and its new state. The state consists of a key and a counter.

    Each counter yields two 32-bit numbers: the halves of one 64-bit element if `wide`, otherwise two adjacent elements.
    """
    key, counter = halves(state[0]), state[1]
    if wide:
        bits = join_halves(*threefry_rounds(key, halves(counter + _numbers(shape))))
        return bits, _advance_counter(state, 1, prod(shape))
    along = _split_dimension(shape)
    half = [-(-extent // 2) if d == along else extent for d, extent in enumerate(shape)] or [1]
    pair = threefry_rounds(key, halves(counter + _numbers(half)))
    both = np.stack(pair, axis=(along or 0) + 1)
    rows = both.reshape([2 * extent if d == (along or 0) else extent for d, extent in enumerate(half)])
    bits = rows[tuple(slice(extent) for extent in shape)] if shape else rows[0]
    return bits, _advance_counter(state, 1, prod(half))


def _split_dimension(shape: Sequence[int]) -> int | None:
    """Return the dimension along which the two 32-bit words generated from one counter are adjacent: the first
    dimension with an even extent, or the longest dimension if no extent is even."""
    even = (d for d, extent in enumerate(shape) if extent % 2 == 0)
    longest = max(range(len(shape)), key=shape.__getitem__) if shape else None
    return next(even, longest)


def _numbers(shape: Sequence[int]) -> Array:
    return np.arange(prod(shape), dtype=U64).reshape(shape)


def _advance_counter(state: Array, place: int, count: int) -> Array:
    new = state.copy()
    new[place] += U64(count)
    return new


def threefry_rounds(key: Sequence[Array], counter: Sequence[Array]) -> list[Array]:
    """Encrypt counters with 20 rounds of Threefry-2x32."""
    keys = [*key, key[0] ^ key[1] ^ U32(THREEFRY_PARITY)]
    low, high = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(THREEFRY_GROUPS):
        for distance in THREEFRY_ROTATIONS[group % 2]:
            low = low + high
            high = (high << U32(distance) | high >> U32(32 - distance)) ^ low
        low = low + keys[(group + 1) % 3]
        high = high + keys[(group + 2) % 3] + U32(group + 1)
    return [low, high]


def philox(state: Array, shape: Sequence[int], wide: bool) -> Bits:
    """Return random bits of the generator Philox, and its new state. The state consists of a key and a 64- or 128-bit
    counter.

    Each counter yields four 32-bit numbers, or two 64-bit numbers if `wide`. The upper half of a 64-bit counter is the
    key.
    """
    words = prod(shape) * (2 if wide else 1)
    blocks = -(-words // 4)
    low = state[1] + np.arange(blocks, dtype=U64)
    high = np.broadcast_to(state[2] if len(state) > 2 else state[0], low.shape) + (low < state[1]).astype(U64)
    mixed = philox_rounds(halves(state[0]), [*halves(low), *halves(high)])
    row = np.stack(mixed, axis=1).reshape(-1)
    values = join_halves(row[0::2], row[1::2]) if wide else row
    new = _advance_counter(state, 1, blocks)
    if len(state) > 2 and new[1] < state[1]:
        new = _advance_counter(new, 2, 1)
    return values[: prod(shape)].reshape(shape), new


def philox_rounds(key: Sequence[Array], counter: Sequence[Array]) -> Sequence[Array]:
    """Encrypt counters with 10 rounds of Philox-4x32."""
    for number in range(PHILOX_ROUNDS):
        first, second = (
            halves(counter[place].astype(U64) * U64(multiplier))
            for place, multiplier in zip((0, 2), PHILOX_MULTIPLIERS, strict=True)
        )
        round_keys = [word + U32(step * number & 0xFFFFFFFF) for word, step in zip(key, PHILOX_KEY_STEPS, strict=True)]
        counter = [second[1] ^ counter[1] ^ round_keys[0], second[0], first[1] ^ counter[3] ^ round_keys[1], first[0]]
    return counter


ALGORITHMS: dict[str, Callable[[Array, Sequence[int], bool], Any]] = {
    "THREE_FRY": three_fry,
    "PHILOX": philox,
    "DEFAULT": philox,
}
