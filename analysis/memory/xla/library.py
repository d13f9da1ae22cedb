"""Operations that XLA:CPU's kernel library supports (`xla/backends/cpu/ynn_support.cc`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from xdsl.dialects.builtin import DenseArrayBase, bf16, f32, f64, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.stablehlo.records import DotAttr
from ....rules.fusion import LIBRARY
from ....rules.names import name_of
from ....support.type_guards import is_tensor
from .layouts import copied

_TYPES = frozenset({f64, f32, bf16, i8})
# For fewer elements the overhead of a library call exceeds its gain.
_LEAST_ELEMENTS = 4096
_LEAST_SIDE = 8
_COMBINERS = frozenset({"stablehlo.add", "stablehlo.maximum", "stablehlo.minimum"})
_TREE = 32
"""A reduction over more elements that the library does not support becomes a windowed reduction first."""


def in_library(op: Operation) -> bool:
    name = name_of(op)
    if name in LIBRARY:
        return _is_large(op) and all(_element(value) in _TYPES for value in (*op.operands, *op.results))
    return name in _WHEN and _WHEN[name](op)


def starts_a_library_kernel(op: Operation) -> bool:
    return name_of(op) in _STARTERS and in_library(op)


def in_two_steps(op: Operation) -> bool:
    """Whether a reduction is rewritten as a windowed reduction and a reduction of its results."""
    if name_of(op) != "stablehlo.reduce" or in_library(op):
        return False
    shape = _shape(op.operands[0])
    return any(shape[dimension] > _TREE for dimension in integers(op, "dimensions"))


def _reduces(op: Operation) -> bool:
    first, last = op.regions[0].blocks[0].first_op, op.regions[0].blocks[0].last_op
    return (
        len(op.operands) == 2
        and _is_large(op)
        and _element(op.operands[0]) in _TYPES
        and first is not None
        and name_of(first) in _COMBINERS
        and first.next_op is last
    )


def _reduces_windows(op: Operation) -> bool:
    """Whether the library supports the windowed reduction: only adjacent windows without overlap."""
    size, step = integers(op, "window_dimensions"), integers(op, "window_strides")
    dilated = any(integer != 1 for name in ("base_dilations", "window_dilations") for integer in integers(op, name))
    side_by_side = all(step[i] == size[i] for i in range(len(size)) if size[i] > 1 or step[i] > 1)
    return _reduces(op) and side_by_side and not dilated and max(size) > 1


def _is_row_by_column(op: Operation) -> bool:
    numbers = op.properties["dot_dimension_numbers"]
    assert isinstance(numbers, DotAttr), "dot_general is registered and verified"
    left, right = _shape(op.operands[0]), _shape(op.operands[1])
    batch, contracted = numbers.data.lhs_batching_dimensions, numbers.data.lhs_contracting_dimensions
    rows = prod(size for i, size in enumerate(left) if i not in (*batch, *contracted))
    inner = prod(left[i] for i in contracted)
    columns = prod(right) // max(1, inner * prod(left[i] for i in batch))
    # Operands in another layout are transposed into a copy, except for matrices: these are read in place, without the
    # library.
    read_by_columns = len(contracted) == 1 and contracted[0] == len(left) - 2 and len(batch) == len(left) - 2
    return (
        all(_element(value) in _TYPES for value in (*op.operands, *op.results))
        and min(rows, columns) > 1
        and max(rows, columns, inner) >= _LEAST_SIDE
        and not (read_by_columns and not copied(op)[0])
    )


def _keeps_order(op: Operation) -> bool:
    dimensions = integers(op, "broadcast_dimensions")
    return _element(op.operands[0]) in _TYPES and list(dimensions) == sorted(set(dimensions))


def _is_large(op: Operation) -> bool:
    return any(prod(_shape(value)) >= _LEAST_ELEMENTS for value in (*op.results, *op.operands))


_WHEN: Mapping[str, Callable[[Operation], bool]] = {
    "stablehlo.reduce": _reduces,
    "stablehlo.reduce_window": _reduces_windows,
    "stablehlo.dot_general": _is_row_by_column,
    "stablehlo.broadcast_in_dim": _keeps_order,
    "stablehlo.pad": lambda op: _element(op.operands[0]) in _TYPES and not any(integers(op, "interior_padding")),
    "stablehlo.iota": lambda op: _element(op.results[0]) in (f32, i32),
}
_STARTERS = frozenset({"stablehlo.reduce", "stablehlo.reduce_window"})


def _element(value: SSAValue) -> Attribute | None:
    return value.type.element_type if is_tensor(value.type) else None


def _shape(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if is_tensor(value.type) else ()


def integers(op: Operation, name: str) -> tuple[int, ...]:
    attribute = op.properties.get(name)
    return tuple(map(int, attribute.get_values())) if isinstance(attribute, DenseArrayBase) else ()
