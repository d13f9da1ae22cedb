"""Layouts that XLA:CPU's kernels require of their operands.

Convolutions require `[b, 0, 1, f]` and `[0, 1, i, o]`; matrix products require the contracted dimensions last on the
left and first on the right. A plain matrix may have either layout, since its transpose is folded into the product,
unless the product drops a batch dimension of extent 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import Operation

from ....dialects.stablehlo.records import ConvolutionAttr, DotAttr, DotDimensions
from ....rules.names import name_of
from ....support.type_guards import is_tensor
from ...step.storage import rank_of


def _of_dot(op: Operation) -> Sequence[Sequence[int]]:
    lhs, rhs = _rows_by_columns(op)
    contracted = len(_numbers(op).lhs_contracting_dimensions)
    read = [
        range(len(permutation)) if _is_read_either_way(permutation, contracted) else permutation
        for permutation in (lhs, rhs)
    ]
    return (lhs, rhs) if _drops_a_batch(op) and any(map(_is_moved, read)) else read


def _is_moved(required: Sequence[int]) -> bool:
    return list(required) != sorted(required)


def _numbers(op: Operation) -> DotDimensions:
    numbers = op.properties["dot_dimension_numbers"]
    assert isinstance(numbers, DotAttr), "dot_general is registered and verified"
    return numbers.data


def _rows_by_columns(op: Operation) -> tuple[Sequence[int], Sequence[int]]:
    numbers, (left, right) = _numbers(op), map(rank_of, op.operands)
    batch, contracted = numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions
    lhs = [*batch, *(d for d in range(left) if d not in (*batch, *contracted)), *contracted]
    batch, contracted = numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions
    rhs = [*batch, *contracted, *(d for d in range(right) if d not in (*batch, *contracted))]
    return lhs, rhs


def _drops_a_batch(op: Operation) -> bool:
    left = op.operands[0].type
    return is_tensor(left) and any(left.get_shape()[d] == 1 for d in _numbers(op).lhs_batching_dimensions)


def _is_read_either_way(permutation: Sequence[int], contracted: int) -> bool:
    """Whether the permutation only exchanges the last two dimensions of a matrix or of a batch of matrices."""
    *batch, row, column = permutation if len(permutation) > 1 else (0, 1)
    return contracted == 1 and batch == sorted(batch) and batch == list(range(len(batch))) and row > column


def _of_convolution(op: Operation) -> Sequence[Sequence[int]]:
    numbers = op.properties["dimension_numbers"]
    assert isinstance(numbers, ConvolutionAttr), "convolution is registered and verified"
    spatial = [str(dimension) for dimension in range(rank_of(op.operands[0]) - 2)]
    lhs, rhs = ["b", *spatial, "f"], [*spatial, "i", "o"]
    return [
        [numbers.data.lhs.index(name) for name in lhs],
        [numbers.data.rhs.index(name) for name in rhs],
    ]


WANTED: Mapping[str, Callable[[Operation], Sequence[Sequence[int]]]] = {
    "stablehlo.dot_general": _of_dot,
    "stablehlo.convolution": _of_convolution,
}
"""The required order of the dimensions in memory, for each of the two operands."""


def copied(op: Operation) -> tuple[bool, ...]:
    """For each operand, whether it is transposed into a copy."""
    return tuple([_is_moved(required) for required in WANTED[name_of(op)](op)])
