"""Kernels of structured linalg operations, which run a body on scalars for every point of an iteration space.

The loops run in order, like nested `for` loops, and an output element accumulates the results of the points that write
to it. The parallel loops run as one vector operation if all of their points write to different elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.linalg.ops import BroadcastOp, ReduceOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from .arrays import Array, Combine, Kernel, as_owned, dtype_at, shape_at

# The indexing map of each operand, and for each loop whether it is parallel.
Space = tuple[list[AffineMap], list[bool]]


def space_of(op: Operation) -> Space:
    """Return the indexing map of each operand, and whether each loop is parallel.

    Raises:
        ValueError: The interpreter does not support the iteration space of the operation.
    """
    if isinstance(op, LinalgStructuredOperation):
        kinds = [kind.data is IteratorType.PARALLEL for kind in op.get_iterator_types()]
        return [attr.data for attr in op.get_indexing_maps()], kinds
    if isinstance(op, ReduceOp):
        dropped = op.dimensions.get_values()
        rank = len(shape_at(op.input))
        kinds = [loop not in dropped for loop in range(rank)]
        return [AffineMap.identity(rank), _kept_dimensions(rank, dropped)], kinds
    if isinstance(op, BroadcastOp):
        rank = len(shape_at(op.init))
        return [_kept_dimensions(rank, op.dimensions.get_values()), AffineMap.identity(rank)], [True] * rank
    raise ValueError("the interpreter does not support the iteration space of this operation")


def _kept_dimensions(rank: int, dropped: Sequence[int]) -> AffineMap:
    return AffineMap(rank, 0, tuple(AffineDimExpr(loop) for loop in range(rank) if loop not in dropped))


def structured_kernel(op: Operation, combine: Combine, indices: Sequence[int]) -> Kernel:
    """Make the kernel of a structured operation.

    Args:
        op: The operation.
        combine: The body, as a function of one element of each operand, the loop indices, and the captures.
        indices: The loops whose indices the body takes.
    """
    maps, parallel = space_of(op)
    loops = _Loops.of(op.operands, maps, parallel, len(op.results))
    count, outputs = len(op.operands), len(op.results)
    dtypes = [dtype_at(result) for result in op.results]

    def run(*values: Array) -> tuple[Array, ...]:
        results = [value.copy(order="C") for value in values[count - outputs : count]]
        operands = [*values[: count - outputs], *results]
        views = [loops.by_loop(operand, map_) for operand, map_ in zip(operands, maps, strict=True)]
        for point in loops.points():
            elements = [loops.at(view, point) for view in views]
            numbers = [loops.number(loop, point) for loop in indices]
            combined = combine(*elements, *numbers, *values[count:])
            for view, new in zip(views[count - outputs :], combined, strict=True):
                loops.write(view, point, new)
        return tuple(as_owned(result, dtype) for result, dtype in zip(results, dtypes, strict=True))

    return run


@dataclass(frozen=True)
class _Loops:
    """The iteration space of an operation: the extent of each loop, and whether the loop runs as part of one vector."""

    extents: tuple[int, ...]
    at_once: tuple[bool, ...]

    @classmethod
    def of(cls, operands: Sequence[SSAValue], maps: Sequence[AffineMap], parallel: list[bool], outputs: int) -> _Loops:
        extents = [-1] * len(parallel)
        for operand, map_ in zip(operands, maps, strict=True):
            for extent, expression in zip(shape_at(operand), map_.results, strict=True):
                if isinstance(expression, AffineDimExpr):
                    extents[expression.position] = extent
        if -1 in extents:
            raise ValueError("the extent of one of its loops is unknown: no operand is indexed by the loop alone")
        # All points write to different elements if each parallel loop indexes its own dimension of every output.
        parallel_loops = sorted(loop for loop, is_parallel in enumerate(parallel) if is_parallel)
        apart = all(sorted(_loop_of_each_index(map_) or []) == parallel_loops for map_ in maps[len(maps) - outputs :])
        if not apart and any(_loop_of_each_index(map_) is None for map_ in maps[len(maps) - outputs :]):
            raise ValueError("the interpreter requires that the indices of each output are different loop indices")
        return cls(tuple(extents), tuple(is_parallel and apart for is_parallel in parallel))

    def points(self) -> Iterator[tuple[int, ...]]:
        pairs = zip(self.at_once, self.extents, strict=True)
        return iter(np.ndindex(*(1 if vector else extent for vector, extent in pairs)))

    @property
    def vector(self) -> tuple[int, ...]:
        return tuple(extent if vector else 1 for vector, extent in zip(self.at_once, self.extents, strict=True))

    def by_loop(self, values: Array, map_: AffineMap) -> Array:
        """Return an operand with one dimension for each loop, of extent 1 if the operand does not depend on the loop.

        The array is a view if all indices are loop indices, otherwise a copy of the elements that the loops read.
        """
        rank = len(self.extents)
        plain = _loop_of_each_index(map_)
        if plain is not None:
            order = sorted(range(len(plain)), key=plain.__getitem__)
            index = tuple(slice(None) if loop in plain else None for loop in range(rank))
            return values.transpose(order)[(*index, ...)]
        # xDSL can evaluate an affine expression on arrays, one for each loop.
        grid: Any = [_along(loop, np.arange(extent), rank) for loop, extent in enumerate(self.extents)]
        places = [np.zeros([1] * rank, np.int64) + expression.eval(grid, []) for expression in map_.results]
        return values[tuple(places)]

    def at(self, view: Array, point: tuple[int, ...]) -> Array:
        """Return the elements at a point of the sequential loops, as one vector over the parallel loops."""
        return np.broadcast_to(view[self._window(view, point)], self.vector).reshape(-1)

    def write(self, view: Array, point: tuple[int, ...], new: Array) -> None:
        window = view[self._window(view, point)]
        window[...] = np.broadcast_to(new, (prod(self.vector),)).reshape(window.shape)

    def _window(self, view: Array, point: tuple[int, ...]) -> tuple[Any, ...]:
        starts = [0 if extent == 1 else start for start, extent in zip(point, view.shape, strict=True)]
        pairs = zip(self.at_once, starts, strict=True)
        return (*(slice(None) if vector else slice(start, start + 1) for vector, start in pairs), ...)

    def number(self, loop: int, point: tuple[int, ...]) -> Array:
        """Return the index of one loop, for every element of the vector that `at` returns at a point of the sequential
        loops.
        """
        line = np.arange(self.extents[loop]) if self.at_once[loop] else np.array([point[loop]])
        return np.broadcast_to(_along(loop, line, len(self.extents)), self.vector).reshape(-1)


def _along(loop: int, line: Array, rank: int) -> Array:
    return line.reshape([-1 if dimension == loop else 1 for dimension in range(rank)])


def _loop_of_each_index(map_: AffineMap) -> list[int] | None:
    """Return the loop of each index if every index is a loop index and no two indices are equal, else None."""
    loops = [result.position for result in map_.results if isinstance(result, AffineDimExpr)]
    return loops if len(loops) == len(map_.results) == len(set(loops)) else None
