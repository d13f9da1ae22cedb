"""Windows that move over a tensor, for convolutions and pooling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, i64
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import AnyDense, is_integer_array, is_standard_dense
from ..dense import to_numpy
from .checks import check_count
from .constraints import Constraint, OpT
from .formats import I64Array


@dataclass(frozen=True)
class DimWindow:
    """Extent, stride, padding and dilations of a window along one dimension."""

    size: int
    stride: int
    low: int
    high: int
    base_dilation: int
    window_dilation: int

    def places(self, extent: int) -> int:
        """The number of places of the window in this extent; dynamic if an extent is."""
        if DYNAMIC_INDEX in (extent, self.size):
            return DYNAMIC_INDEX
        padded = self.low + _dilated(extent, self.base_dilation) + self.high
        return max((padded - _dilated(self.size, self.window_dilation)) // self.stride + 1, 0)


def _dilated(extent: int, dilation: int) -> int:
    return (extent - 1) * dilation + 1 if extent else 0


def windows(
    sizes: Sequence[int],
    strides: I64Array | None,
    padding: Attribute | None,
    base_dilations: I64Array | None = None,
    window_dilations: I64Array | None = None,
) -> list[DimWindow]:
    """One window per dimension. Missing strides and dilations are 1, missing padding is 0."""
    fields = [or_ones(field, len(sizes)) for field in (strides, base_dilations, window_dilations)]
    pads = padding_of(padding, len(sizes))
    return [
        DimWindow(size, stride, low, high, base, dilation)
        for size, stride, (low, high), base, dilation in zip(sizes, fields[0], pads, fields[1], fields[2], strict=True)
    ]


def or_ones(array: I64Array | None, rank: int) -> Sequence[int]:
    """The values; ones if there are none."""
    return array.get_values() if array is not None and len(array) else (1,) * rank


def padding_of(padding: Attribute | None, rank: int) -> list[tuple[int, int]]:
    """The padding before and after each dimension; zeros if there are no pairs."""
    if padding is None:
        return [(0, 0)] * rank
    # Check the type before the data: a splat of a few characters may have any number of rows.
    (count, _) = _check_pairs(padding).get_shape()
    if count not in (0, rank):
        raise VerifyException(f"the pairs of padding are {count}, expected {rank}")
    return pairs_of(padding) or [(0, 0)] * rank


def pairs_of(padding: Attribute) -> list[tuple[int, int]]:
    """The rows of a constant."""
    return [(int(low), int(high)) for low, high in to_numpy(_check_pairs(padding))]


def _check_pairs(padding: Attribute) -> AnyDense:
    if not is_standard_dense(padding) or padding.get_element_type() != i64 or padding.get_shape()[1:] != (2,):
        raise VerifyException("padding is no constant of type tensor<Nx2xi64>")
    return padding


def check_positive(subject: str, values: Sequence[int]) -> None:
    if any(value < 1 for value in values):
        raise VerifyException(f"{subject} {list(values)} are not all positive")


def moving(fields: Mapping[str, tuple[str, str]], rank: Callable[[OpT], int]) -> list[Constraint[OpT]]:
    """Constraints on optional properties with one positive number for each of `rank` dimensions.

    fields: For each property name, the labels of the two constraints.
    """

    def counted(name: str) -> Callable[[OpT], None]:
        return lambda op: check_count(name, len(or_ones(_array(op, name), rank(op))), rank(op))

    def positive(name: str) -> Callable[[OpT], None]:
        return lambda op: check_positive(name, or_ones(_array(op, name), rank(op)))

    return [
        constraint
        for name, (of_count, of_values) in fields.items()
        for constraint in (Constraint(of_count, counted(name)), Constraint(of_values, positive(name)))
    ]


def _array(op: Operation, name: str) -> I64Array | None:
    array = op.properties.get(name)
    return array if array is not None and is_integer_array(array) else None
