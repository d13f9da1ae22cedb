"""The kernel of `chlo.ragged_dot`, which computes one product for each group. Masks select the rows, or the summed
elements, of the group.

Rows after the last group are zero, as in JAX.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_letters

import numpy as np

from ...dialects.chlo.ragged_dot import RaggedDotOp
from .arrays import Array, Kernel, as_owned, dtype_at, shape_at, wide
from .conversion import convert


@dataclass(frozen=True)
class _Einsum:
    """The dimensions of the product of one group, as letters for `np.einsum`.

    Attributes:
        left: The letters of the left operand.
        right: The letters of the right operand, without the dimension of groups.
        product: The letters of the result of one group.
        rows: The letters of the dimensions that assign a row, or a summed element, to a group.
    """

    left: list[str]
    right: list[str]
    product: list[str]
    rows: list[str]

    @classmethod
    def of(cls, op: RaggedDotOp) -> _Einsum:
        numbers, rank = op.numbers, len(shape_at(op.lhs))
        left, right = list(ascii_letters[:rank]), list(ascii_letters[rank : rank + len(shape_at(op.rhs))])
        dimension_pairs = (
            (numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions),
            (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions),
        )
        for lhs_dimensions, rhs_dimensions in dimension_pairs:
            for lhs_dimension, rhs_dimension in zip(lhs_dimensions, rhs_dimensions, strict=True):
                right[rhs_dimension] = left[lhs_dimension]
        rows, columns = op.free_dimensions()
        batches = [left[dimension] for dimension in numbers.lhs_batching_dimensions]
        product = [*batches, *(left[dimension] for dimension in rows), *(right[dimension] for dimension in columns)]
        group_dimensions = (
            [left[dimension] for dimension in op.group_dimensions()] if len(shape_at(op.group_sizes)) > 1 else []
        )
        of_one_group = [
            letter for dimension, letter in enumerate(right) if dimension not in numbers.rhs_group_dimensions
        ]
        return cls(left, of_one_group, product, [*group_dimensions, left[op.ragged_dimension]])

    def multiply(self, left: Array, right: Array) -> Array:
        equation = f"{''.join(self.left)},{''.join(self.right)}->{''.join(self.product)}"
        return np.einsum(equation, left, right)


def ragged_dot(op: RaggedDotOp) -> Kernel:
    """Make the kernel of `chlo.ragged_dot`.

    The kernel computes products and sums in the element type of the result, or in f32 if this type is smaller.
    """
    einsum = _Einsum.of(op)
    group_dimensions = op.numbers.rhs_group_dimensions
    extent = shape_at(op.lhs)[op.ragged_dimension]
    dtype = dtype_at(op.result)
    shape = shape_at(op.result)
    working = wide(dtype)
    is_contracted = op.ragged_dimension in op.numbers.lhs_contracting_dimensions

    def run(lhs: Array, rhs: Array, sizes: Array) -> tuple[Array, ...]:
        lhs, rhs = (value if value.dtype == working else convert(value, working) for value in (lhs, rhs))
        if not group_dimensions and not is_contracted:
            return (as_owned(einsum.multiply(lhs, rhs), dtype),)
        ends = np.cumsum(sizes.astype(np.int64), axis=-1)
        starts = ends - sizes.astype(np.int64)
        positions = np.arange(extent)
        result = np.zeros(shape, working)
        for group in range(sizes.shape[-1]):
            start, end = starts[..., group, None], ends[..., group, None]
            in_group = (start <= positions) & (positions < end)
            if is_contracted:
                left_rows = np.where(_align(in_group, einsum.rows, einsum.left), lhs, 0)
                right_rows = np.where(_align(in_group, einsum.rows, einsum.right), rhs, 0)
                result[group] = einsum.multiply(left_rows, right_rows)
            else:
                group_axis = group_dimensions[0] if group_dimensions else 0
                values = einsum.multiply(lhs, np.take(rhs, group, axis=group_axis))
                result = np.where(_align(in_group, einsum.rows, einsum.product), values, result)
        return (as_owned(result, dtype),)

    return run


def _align(values: Array, letters: list[str], target: list[str]) -> Array:
    """Transpose an array with the dimensions `letters` to the order `target`. Insert a dimension of extent 1 for each
    letter of `target` that the array lacks.
    """
    order = sorted(range(len(letters)), key=lambda index: target.index(letters[index]))
    places = [index for index, letter in enumerate(target) if letter not in letters]
    return np.expand_dims(values.transpose(order), tuple(places))
