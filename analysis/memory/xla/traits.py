"""Traits of operations in the XLA:CPU model: required layouts, library kernels, and conditions of fusion.

Convolutions require the layouts `[b, 0, 1, f]` and `[0, 1, i, o]`. Matrix products require the contracted dimensions
last on the left and first on the right. A plain matrix may have either layout, since its transpose is folded into the
product, unless the product drops a batch dimension of extent 1.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from math import prod
from typing import Final

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, bf16, f32, f64, i1, i8, i32
from xdsl.ir import Block, Operation, SSAValue

from ....dialects.placements import is_placement
from ....dialects.stablehlo.attributes import DotAttr, DotDimensions
from ....dialects.stablehlo.convolution import ConvolutionAttr
from ....rules.fusion import EXPENSIVE, FUSIBLE, LIBRARY, REDUCTIONS
from ....support.operations import name_of
from ....support.type_guards import is_tensor
from ...step.views import element_type_of, rank_of, shape_of


def _dot_layouts(op: Operation) -> Sequence[Sequence[int]]:
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
    """Return whether the permutation exchanges only the last two dimensions of a matrix or a batch of matrices."""
    *batch, row, column = permutation if len(permutation) > 1 else (0, 1)
    return contracted == 1 and batch == sorted(batch) and batch == list(range(len(batch))) and row > column


def _convolution_layouts(op: Operation) -> Sequence[Sequence[int]]:
    numbers = op.properties["dimension_numbers"]
    assert isinstance(numbers, ConvolutionAttr), "convolution is registered and verified"
    spatial = [str(dimension) for dimension in range(rank_of(op.operands[0]) - 2)]
    lhs, rhs = ["b", *spatial, "f"], [*spatial, "i", "o"]
    return [
        [numbers.data.lhs.index(name) for name in lhs],
        [numbers.data.rhs.index(name) for name in rhs],
    ]


REQUIRED_LAYOUTS: Mapping[str, Callable[[Operation], Sequence[Sequence[int]]]] = {
    "stablehlo.dot_general": _dot_layouts,
    "stablehlo.convolution": _convolution_layouts,
}
"""The required order of the dimensions in memory, for each of the two operands."""


def needs_transposed_copy(op: Operation) -> tuple[bool, ...]:
    """Return, for each operand, whether it must be transposed into a copy."""
    return tuple([_is_moved(required) for required in REQUIRED_LAYOUTS[name_of(op)](op)])


_TYPES = frozenset({f64, f32, bf16, i8})
_MIN_ELEMENTS = 4096
"""Minimum number of elements of an operand or result for which XLA calls a library kernel. For fewer elements, the
overhead exceeds the gain."""
_MIN_SIDE = 8
"""Minimum extent of the largest dimension of a matrix product for which XLA calls a library kernel."""
_COMBINERS = frozenset({"stablehlo.add", "stablehlo.maximum", "stablehlo.minimum"})
_MAX_DIRECT_EXTENT = 32
"""The extent of a reduced dimension above which a reduction without library support begins with a windowed
reduction."""


def in_library(op: Operation) -> bool:
    """Return whether XLA:CPU may compute the operation inside a library kernel."""
    name = name_of(op)
    if name in LIBRARY:
        return _is_large(op) and all(element_type_of(value) in _TYPES for value in (*op.operands, *op.results))
    return name in _LIBRARY_CONDITIONS and _LIBRARY_CONDITIONS[name](op)


def starts_a_library_kernel(op: Operation) -> bool:
    """Return whether the operation can be the root of a library kernel."""
    return name_of(op) in _STARTERS and in_library(op)


def in_two_steps(op: Operation) -> bool:
    """Return whether XLA rewrites the reduction as a windowed reduction followed by a reduction of its results."""
    if name_of(op) != "stablehlo.reduce" or in_library(op):
        return False
    shape = shape_of(op.operands[0])
    return any(shape[dimension] > _MAX_DIRECT_EXTENT for dimension in integers(op, "dimensions"))


def _reduces(op: Operation) -> bool:
    first, last = op.regions[0].blocks[0].first_op, op.regions[0].blocks[0].last_op
    return (
        len(op.operands) == 2
        and _is_large(op)
        and element_type_of(op.operands[0]) in _TYPES
        and first is not None
        and name_of(first) in _COMBINERS
        and first.next_op is last
    )


def _reduces_windows(op: Operation) -> bool:
    """Return whether the library supports the windowed reduction: its windows must be adjacent and not overlap."""
    size, step = integers(op, "window_dimensions"), integers(op, "window_strides")
    dilated = any(integer != 1 for name in ("base_dilations", "window_dilations") for integer in integers(op, name))
    side_by_side = all(step[i] == size[i] for i in range(len(size)) if size[i] > 1 or step[i] > 1)
    return _reduces(op) and side_by_side and not dilated and max(size) > 1


def _is_row_by_column(op: Operation) -> bool:
    numbers = op.properties["dot_dimension_numbers"]
    assert isinstance(numbers, DotAttr), "dot_general is registered and verified"
    left, right = shape_of(op.operands[0]), shape_of(op.operands[1])
    batch, contracted = numbers.data.lhs_batching_dimensions, numbers.data.lhs_contracting_dimensions
    rows = prod(size for i, size in enumerate(left) if i not in (*batch, *contracted))
    inner = prod(left[i] for i in contracted)
    columns = prod(right) // max(1, inner * prod(left[i] for i in batch))
    # Operands in another layout are transposed into a copy, except for matrices. A matrix in another layout is read in
    # place, and the library does not compute the product.
    read_by_columns = len(contracted) == 1 and contracted[0] == len(left) - 2 and len(batch) == len(left) - 2
    return (
        all(element_type_of(value) in _TYPES for value in (*op.operands, *op.results))
        and min(rows, columns) > 1
        and max(rows, columns, inner) >= _MIN_SIDE
        and not (read_by_columns and not needs_transposed_copy(op)[0])
    )


def _keeps_order(op: Operation) -> bool:
    dimensions = integers(op, "broadcast_dimensions")
    return element_type_of(op.operands[0]) in _TYPES and list(dimensions) == sorted(set(dimensions))


def _is_large(op: Operation) -> bool:
    return any(prod(shape_of(value)) >= _MIN_ELEMENTS for value in (*op.results, *op.operands))


_LIBRARY_CONDITIONS: Mapping[str, Callable[[Operation], bool]] = {
    "stablehlo.reduce": _reduces,
    "stablehlo.reduce_window": _reduces_windows,
    "stablehlo.dot_general": _is_row_by_column,
    "stablehlo.broadcast_in_dim": _keeps_order,
    "stablehlo.pad": lambda op: element_type_of(op.operands[0]) in _TYPES and not any(integers(op, "interior_padding")),
    "stablehlo.iota": lambda op: element_type_of(op.results[0]) in (f32, i32),
}
_STARTERS = frozenset({"stablehlo.reduce", "stablehlo.reduce_window"})


def integers(op: Operation, name: str) -> tuple[int, ...]:
    """Return the integers of the property; empty for an operation without it."""
    attribute = op.properties.get(name)
    return tuple(map(int, attribute.get_values())) if isinstance(attribute, DenseArrayBase) else ()


Traits = int
"""The traits of one operation as bits, since queries are frequent and Python's `Flag` is ten times as slow."""


class Trait:
    """Bits of `Traits`.

    Attributes:
        FUSIBLE: The operation can be fused into its readers, and its operands can be fused into it.
        EXPENSIVE: The operation is never computed in several kernels, nor in a reader with the trait `REUSES`.
        REUSES: The operation reads elements of its first operand repeatedly.
        SUMS: The operation is a reduction that absorbs operands without other readers.
        LIBRARY: A library kernel can compute the operation.
        STARTS: A library kernel is created for the operation.
    """

    NONE: Final = 0
    FUSIBLE: Final = 1
    EXPENSIVE: Final = 2
    REUSES: Final = 4
    SUMS: Final = 8
    LIBRARY: Final = 16
    STARTS: Final = 32


def traits_of(op: Operation, constant: Container[SSAValue]) -> Traits:
    """Return the traits of an operation.

    `constant`: the values that are computed only from constants.
    """
    name, traits = name_of(op), Trait.NONE
    if name in FUSIBLE and not _is_copied_row_by_row(op):
        traits |= Trait.FUSIBLE
        if _is_expensive(op, constant):
            traits |= Trait.EXPENSIVE
        if _reuses_elements(op):
            traits |= Trait.REUSES
    if in_library(op):
        traits |= Trait.LIBRARY
        if starts_a_library_kernel(op):
            traits |= Trait.STARTS
    elif name in REDUCTIONS and not in_two_steps(op):
        traits |= Trait.SUMS
    return traits


def is_mask_as_numbers(op: Operation) -> bool:
    """Return whether the operation converts a mask to numbers; XLA turns a product with the result into a select."""
    return name_of(op) == "stablehlo.convert" and element_type_of(op.operands[0]) == i1


_POSSIBLE_NO_OPS = frozenset(f"stablehlo.{name}" for name in ("pad", "slice", "convert"))


def does_nothing(op: Operation) -> bool:
    """Return whether XLA:CPU removes the operation as a no-op.

    No-ops are moves to the host, because the host is the device on this platform, and ineffective padding, slices and
    casts that differentiation generates.
    """
    if is_placement(op):
        return True
    if name_of(op) == "stablehlo.broadcast_in_dim":
        dimensions = integers(op, "broadcast_dimensions")
        # A broadcast that only adds dimensions of extent 1 is a reshape.
        return _elements(op.operands[0]) == _elements(op.results[0]) and list(dimensions) == sorted(dimensions)
    return name_of(op) in _POSSIBLE_NO_OPS and op.operands[0].type == op.results[0].type


def _is_expensive(op: Operation, constant: Container[SSAValue]) -> bool:
    name = name_of(op)
    if name == "stablehlo.divide":
        return not divides_cheaply(op, constant)
    if name == "stablehlo.convert":
        return element_type_of(op.results[0]) == bf16
    return name in EXPENSIVE


def divides_cheaply(op: Operation, constant: Container[SSAValue]) -> bool:
    """Return whether XLA turns the division into a multiplication, because the divisor is a constant or a broadcast."""
    return op.operands[1] in constant or _is_spread(op.operands[1].owner)


def _is_spread(maker: Operation | Block) -> bool:
    return isinstance(maker, Operation) and name_of(maker) == "stablehlo.broadcast_in_dim" and _reuses_elements(maker)


def _reuses_elements(op: Operation) -> bool:
    """Return whether the operation reads elements of its first operand repeatedly, or only some of them at dynamic
    indices."""
    if name_of(op) == "stablehlo.broadcast_in_dim":
        return _elements(op.results[0]) > _elements(op.operands[0])
    return name_of(op) == "stablehlo.dynamic_slice"


_MAX_PIECES = 8
"""Maximum number of operands of a concatenation that is computed in its readers. If there are more operands, XLA copies
the rows of each operand."""
_MIN_COPIED_ROW = 64
"""Rows of at least this many elements are copied as a whole. This is faster than computing them in the reader."""


def _is_copied_row_by_row(op: Operation) -> bool:
    if name_of(op) != "stablehlo.concatenate":
        return False
    dimension = op.properties["dimension"]
    assert isinstance(dimension, IntegerAttr), "concatenate is registered and verified"
    shapes = [operand.type.get_shape() for operand in op.operands if is_tensor(operand.type)]
    along_rows = dimension.value.data == len(shapes[0]) - 1
    return len(shapes) > _MAX_PIECES or (along_rows and any(shape[-1] >= _MIN_COPIED_ROW for shape in shapes))


def _elements(value: SSAValue) -> int:
    count = 1
    if is_tensor(value.type):
        for size in value.type.get_shape():
            count *= size
    return count
