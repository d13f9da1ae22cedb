"""Kernel of `chlo.ragged_dot`: one product for each group, masked to the rows, or to the summed elements, of the group.

Rows beyond the last group are zero, as in JAX.
"""

from __future__ import annotations

from string import ascii_letters

import numpy as np

from ...dialects.chlo.ragged_dot import RaggedDotOp
from .arrays import Array, Kernel, dtype_at, owned, shape_at, wide
from .conversion import convert


def ragged_dot(op: RaggedDotOp) -> Kernel:
    """Make the kernel of `chlo.ragged_dot`.

    Products and sums are computed in the element type of the result, or in f32 if that is smaller.
    """
    numbers = op.numbers
    count = len(shape_at(op.lhs))
    left, right = list(ascii_letters[:count]), list(ascii_letters[count : count + len(shape_at(op.rhs))])
    paired = (
        (numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions),
        (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions),
    )
    for lhs_dimensions, rhs_dimensions in paired:
        for lhs_dimension, rhs_dimension in zip(lhs_dimensions, rhs_dimensions, strict=True):
            right[rhs_dimension] = left[lhs_dimension]
    rows, columns = op.free()
    batches = [left[dimension] for dimension in numbers.lhs_batching_dimensions]
    product = [*batches, *(left[dimension] for dimension in rows), *(right[dimension] for dimension in columns)]
    has_groups = bool(numbers.rhs_group_dimensions)
    group_dimension = numbers.rhs_group_dimensions[0] if has_groups else 0
    of_group = [letter for dimension, letter in enumerate(right) if not has_groups or dimension != group_dimension]
    equation = f"{''.join(left)},{''.join(of_group)}->{''.join(product)}"
    before = [left[dimension] for dimension in op.before_ragged()] if len(shape_at(op.group_sizes)) > 1 else []
    member = [*before, left[op.ragged]]
    extent, dtype, shape = shape_at(op.lhs)[op.ragged], dtype_at(op.result), shape_at(op.result)
    working = wide(dtype)
    is_contracted = op.ragged in numbers.lhs_contracting_dimensions

    def run(lhs: Array, rhs: Array, sizes: Array) -> tuple[Array, ...]:
        lhs, rhs = (value if value.dtype == working else convert(value, working) for value in (lhs, rhs))
        if not has_groups and not is_contracted:
            return (owned(np.einsum(equation, lhs, rhs), dtype),)
        ends = np.cumsum(sizes.astype(np.int64), axis=-1)
        starts = ends - sizes.astype(np.int64)
        places = np.arange(extent)
        result = np.zeros(shape, working)
        for group in range(sizes.shape[-1]):
            start, end = starts[..., group, None], ends[..., group, None]
            inside = (start <= places) & (places < end)
            if is_contracted:
                left_rows = np.where(_aligned(inside, member, left), lhs, 0)
                right_rows = np.where(_aligned(inside, member, of_group), rhs, 0)
                result[group] = np.einsum(equation, left_rows, right_rows)
            else:
                values = np.einsum(equation, lhs, np.take(rhs, group, axis=group_dimension))
                result = np.where(_aligned(inside, member, product), values, result)
        return (owned(result, dtype),)

    return run


def _aligned(values: Array, letters: list[str], target: list[str]) -> Array:
    """Transpose an array with the dimensions `letters` to the order of `target`, and insert extents of 1 for the
    missing ones."""
    order = sorted(range(len(letters)), key=lambda index: target.index(letters[index]))
    places = [index for index, letter in enumerate(target) if letter not in letters]
    return np.expand_dims(values.transpose(order), tuple(places))
