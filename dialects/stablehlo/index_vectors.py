"""Common parts of gather and scatter: tensors of index vectors, and window dimensions among batch dimensions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from .checks import Shape, check_count, check_distinct, check_ordered, check_shape, check_within, element_of, shape_of
from .records import GatherDimensions, ScatterDimensions
from .structs import Dimensions


class IndexingOp(IRDLOperation):
    """Reads or writes slices of tensors at the offsets of index vectors."""

    @property
    @abstractmethod
    def numbers(self) -> GatherDimensions | ScatterDimensions:
        """The dimension numbers."""

    @property
    @abstractmethod
    def sliced(self) -> SSAValue:
        """The tensor that is sliced; the first one of several."""

    @property
    @abstractmethod
    def indices(self) -> SSAValue:
        """The tensor of the index vectors."""

    def dimensions(self, *names: str) -> Dimensions:
        """The dimensions with these names, concatenated."""
        return tuple(dimension for name in names for dimension in getattr(self.numbers, name))

    def batch(self) -> list[int]:
        """The extents of the index tensor without the dimension of the index vectors."""
        indices = shape_of(self.indices)
        return [extent for dimension, extent in enumerate(indices) if dimension != self.numbers.index_vector_dim]


Check: TypeAlias = Callable[[IndexingOp], None]


def rank_sliced(op: IndexingOp) -> int:
    return len(shape_of(op.sliced))


def rank_of_indices(op: IndexingOp) -> int:
    return len(shape_of(op.indices))


def rank_between(window: str) -> Callable[[IndexingOp], int]:
    """The rank of a batch of windows, whose dimensions have this name."""
    return lambda op: len(op.batch()) + len(op.dimensions(window))


def within(name: str, rank: Callable[[IndexingOp], int]) -> Check:
    return lambda op: check_within(name, op.dimensions(name), rank(op))


def ordered(name: str) -> Check:
    return lambda op: check_ordered(name, op.dimensions(name))


def distinct(*names: str) -> Check:
    return lambda op: check_distinct(" and ".join(names), op.dimensions(*names))


def distinct_and_ordered(name: str) -> Check:
    def check(op: IndexingOp) -> None:
        check_distinct(name, op.dimensions(name))
        check_ordered(name, op.dimensions(name))

    return check


def adding_up(*names: str) -> Check:
    """Check that each dimension of the sliced tensor has one of these roles."""
    return lambda op: check_count(" and ".join(names), len(op.dimensions(*names)), rank_sliced(op))


def as_many(name: str, other: str) -> Check:
    return lambda op: check_count(name, len(op.dimensions(name)), len(op.dimensions(other)))


def batched_alike(of_sliced: str, of_indices: str) -> Check:
    """Check that the batching dimensions of the sliced tensor have the extents of those of the indices."""

    def check(op: IndexingOp) -> None:
        sliced, indices = shape_of(op.sliced), shape_of(op.indices)
        actual = [sliced[dimension] for dimension in op.dimensions(of_sliced)]
        expected = [indices[dimension] for dimension in op.dimensions(of_indices)]
        check_shape(f"what {of_sliced} name", actual, expected)

    return check


def indices_are_integers(op: IndexingOp) -> None:
    element = element_of(op.indices)
    if not isinstance(element, IntegerType | IndexType):
        raise VerifyException(f"the indices have elements of type {element}, expected integers")


def vectors_lie_along_a_dimension(op: IndexingOp) -> None:
    """Check `index_vector_dim`; the rank of the indices means that each index is a vector of its own."""
    if not 0 <= op.numbers.index_vector_dim <= rank_of_indices(op):
        raise VerifyException(f"index_vector_dim is {op.numbers.index_vector_dim}, expected 0 to {rank_of_indices(op)}")


def vectors_fill(name: str) -> Check:
    """Check that a vector has one index for each dimension of this name."""

    def check(op: IndexingOp) -> None:
        dimension, shape = op.numbers.index_vector_dim, shape_of(op.indices)
        length = shape[dimension] if dimension < len(shape) else 1
        check_shape("an index vector", [length], [len(op.dimensions(name))])

    return check


def vectors_apart_from(name: str) -> Check:
    def check(op: IndexingOp) -> None:
        if op.numbers.index_vector_dim in op.dimensions(name):
            raise VerifyException(f"{name} name index_vector_dim {op.numbers.index_vector_dim} too")

    return check


def interleaved(window: Shape, batch: Shape, window_dimensions: Shape) -> list[int]:
    """A shape with the window's extents at `window_dimensions` and the batch's in the other places, in order."""
    windows, batches = iter(window), iter(batch)
    rank = len(window) + len(batch)
    return [next(windows if dimension in window_dimensions else batches) for dimension in range(rank)]
