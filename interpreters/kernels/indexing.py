"""Kernels of gather and scatter for all dimension numbers, with index arrays for all elements at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.indexing import DynamicGatherOp, GatherOp, ScatterOp
from .arrays import Array, Combine, Kernel, as_owned, dtype_at, on_two
from .conversion import convert


def gather(op: GatherOp) -> Kernel:
    sizes = op.slice_sizes.get_values()
    gathered = gather_with(op)
    return on_two(lambda operand, indices: gathered(operand, indices, sizes))


def gather_with(op: GatherOp | DynamicGatherOp) -> Callable[[Array, Array, Sequence[int]], Array]:
    """Return the gather as a function of operand, indices and slice sizes. Start indices are clamped to keep slices in
    bounds."""
    numbers = op.dimension_numbers.data
    extents = shape_of(op.operand)
    rank = len(shape_of(op.result))
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [dimension for dimension in range(len(extents)) if dimension not in dropped]
    window = dict(zip(kept, sorted(numbers.offset_dims), strict=True))
    batch = [dimension for dimension in range(rank) if dimension not in numbers.offset_dims]
    batching = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))

    def run(operand: Array, indices: Array, sizes: Sequence[int]) -> Array:
        limits = [extent - size for extent, size in zip(extents, sizes, strict=True)]
        starts = _starts(indices, numbers.index_vector_dim, numbers.start_index_map, batch, rank)
        starts = {dimension: np.clip(start, 0, limits[dimension]) for dimension, start in starts.items()}
        aligned = _batch_positions(indices.shape, numbers.index_vector_dim, batching, batch, rank)
        offsets = {dimension: _along(place, sizes[dimension], rank) for dimension, place in window.items()}
        index = _sums([starts, aligned, offsets], len(extents), rank)
        return as_owned(operand[(*index, ...)], operand.dtype)

    return run


def scatter(op: ScatterOp, combine: Combine) -> Kernel:
    """Make the kernel of `stablehlo.scatter`, which applies updates in the order of their indices and skips updates
    that are out of bounds."""
    numbers = op.scatter_dimension_numbers.data
    extents, shape = shape_of(op.inputs[0]), shape_of(op.updates[0])
    rank, count = len(shape), len(op.inputs)
    dropped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    kept = [dimension for dimension in range(len(extents)) if dimension not in dropped]
    window = dict(zip(kept, sorted(numbers.update_window_dims), strict=True))
    batch = [dimension for dimension in range(rank) if dimension not in numbers.update_window_dims]
    batching = dict(zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
    dtypes = [dtype_at(output) for output in op.outputs]

    def run(*operands: Array) -> tuple[Array, ...]:
        inputs, indices = operands[:count], operands[count]
        updates, captured = operands[count + 1 : 2 * count + 1], operands[2 * count + 1 :]
        starts = _starts(indices, numbers.index_vector_dim, numbers.scatter_dims_to_operand_dims, batch, rank)
        aligned = _batch_positions(indices.shape, numbers.index_vector_dim, batching, batch, rank)
        offsets = {dimension: _along(place, shape[place], rank) for dimension, place in window.items()}
        index = _sums([starts, aligned, offsets], len(extents), rank)
        places, inside = _flat(index, extents, shape)
        # The result types may be wider than the input types, if the region computes in a wider type.
        results = [convert(values, dtype) for values, dtype in zip(inputs, dtypes, strict=True)]
        flat = [result.reshape(-1) for result in results]
        new = [update.reshape(-1) for update in updates]
        for turn in turns(places, inside):
            at = places[turn]
            current, added = (result[at] for result in flat), (update[turn] for update in new)
            combined = combine(*current, *added, *captured)
            for result, values, dtype in zip(flat, combined, dtypes, strict=True):
                result[at] = values.astype(dtype, copy=False)
        return tuple(results)

    return run


def _along(place: int, extent: int, rank: int) -> Array:
    """Return an array with `rank` dimensions that contains 0, 1, … along dimension `place`. The other extents are 1."""
    return np.arange(extent).reshape([-1 if dimension == place else 1 for dimension in range(rank)])


def _starts(
    indices: Array, vector: int, dimensions: Sequence[int], batch: Sequence[int], rank: int
) -> dict[int, Array]:
    """Return, for each indexed dimension of the operand, the starts of all slices, as an array along the batch
    dimensions."""
    # Unsigned indices above the signed range become negative. Negative indices are also out of bounds.
    vectors = np.asarray(indices, np.int64)
    vectors = np.moveaxis(vectors, vector, -1) if vector < vectors.ndim else vectors[..., np.newaxis]
    shape = [1] * rank
    for place, extent in zip(batch, vectors.shape[:-1], strict=True):
        shape[place] = extent
    return {dimension: vectors[..., part].reshape(shape) for part, dimension in enumerate(dimensions)}


def _batch_positions(
    shape: Sequence[int], vector: int, batching: Mapping[int, int], batch: Sequence[int], rank: int
) -> dict[int, Array]:
    """Return, for each batching dimension of the operand, the positions of all slices along this dimension."""
    return {
        dimension: _along(batch[partner - (partner > vector)], shape[partner], rank)
        for dimension, partner in batching.items()
    }


def _sums(parts: Sequence[Mapping[int, Array]], dimensions: int, rank: int) -> list[Array]:
    nothing = np.zeros([1] * rank, np.int64)
    return [sum((part[d] for part in parts if d in part), nothing) for d in range(dimensions)]


def _flat(index: Sequence[Array], extents: Sequence[int], shape: Sequence[int]) -> tuple[Array, Array]:
    """Return the row-major positions of all elements, and a mask of the elements that are in bounds."""
    places = np.zeros(shape, np.int64)
    inside = np.ones(shape, np.bool_)
    for part, extent in zip(index, extents, strict=True):
        inside &= (part >= 0) & (part < extent)
        places = places * extent + part
    return places.reshape(-1), inside.reshape(-1)


def turns(places: Array, inside: Array) -> Iterator[Array]:
    """Yield the indices of the elements that are in bounds, in groups. No two elements of a group have the same place.

    Elements with the same place are in successive groups and keep their order.

    Args:
        places: The position in the result to which each element is written.
        inside: Whether each element is in bounds.
    """
    (chosen,) = np.nonzero(inside)
    order = chosen[np.argsort(places[chosen], kind="stable")]
    positions = np.arange(order.size)
    is_first = np.ones(order.size, np.bool_)
    is_first[1:] = places[order[1:]] != places[order[:-1]]
    turn = positions - np.maximum.accumulate(np.where(is_first, positions, 0))
    yield from np.split(order[np.argsort(turn, kind="stable")], np.cumsum(np.bincount(turn))[:-1])
