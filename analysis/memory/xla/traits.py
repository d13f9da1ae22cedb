"""Traits of operations for XLA:CPU's fusion; `fusion.py` and `library_kernels.py` decide by these alone."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from xdsl.dialects.builtin import IntegerAttr, bf16, i1
from xdsl.ir import Block, Operation, SSAValue

from ....dialects.placements import is_placement
from ....rules.fusion import EXPENSIVE, FUSIBLE, REDUCTIONS
from ....rules.names import name_of
from ....support.type_guards import is_tensor
from .library import in_library, in_two_steps, integers, starts_a_library_kernel

Traits = int
"""The traits of one operation, as bits. Queries are frequent, and ten times as slow with Python's `Flag`."""


class Trait:
    """Bits of `Traits`.

    FUSIBLE: it can be fused into its readers, and its operands into it.
    EXPENSIVE: it is not computed twice, nor once per element of a reader that `REUSES` it.
    REUSES: it reads elements of its first operand repeatedly.
    SUMS: operands without other readers are fused into it.
    LIBRARY: a library kernel can compute it.
    STARTS: a library kernel is created for it.
    """

    NONE: Final = 0
    FUSIBLE: Final = 1
    EXPENSIVE: Final = 2
    REUSES: Final = 4
    SUMS: Final = 8
    LIBRARY: Final = 16
    STARTS: Final = 32


def traits_of(op: Operation, constant: Container[SSAValue]) -> Traits:
    """`constant`: the values that are computed from constants alone."""
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
    """Whether the operation converts a mask to numbers. XLA turns a product with it into a select by the mask."""
    return name_of(op) == "stablehlo.convert" and _element(op.operands[0]) == i1


_OFTEN_NOTHING = frozenset(f"stablehlo.{name}" for name in ("pad", "slice", "convert"))


def does_nothing(op: Operation) -> bool:
    """Whether XLA:CPU removes the operation: moves to the host, which is the device, and padding, slices and casts
    without effect, which differentiation generates."""
    if is_placement(op):
        return True
    if name_of(op) == "stablehlo.broadcast_in_dim":
        dimensions = integers(op, "broadcast_dimensions")
        # A broadcast that only adds dimensions of extent 1 is a reshape.
        return _elements(op.operands[0]) == _elements(op.results[0]) and list(dimensions) == sorted(dimensions)
    return name_of(op) in _OFTEN_NOTHING and op.operands[0].type == op.results[0].type


def _is_expensive(op: Operation, constant: Container[SSAValue]) -> bool:
    name = name_of(op)
    if name == "stablehlo.divide":
        return not divides_cheaply(op, constant)
    if name == "stablehlo.convert":
        return _element(op.results[0]) == bf16
    return name in EXPENSIVE


def divides_cheaply(op: Operation, constant: Container[SSAValue]) -> bool:
    """Whether a division becomes a multiplication: by a constant, or by a broadcast of reciprocals."""
    return op.operands[1] in constant or _is_spread(op.operands[1].owner)


def _is_spread(maker: Operation | Block) -> bool:
    return isinstance(maker, Operation) and name_of(maker) == "stablehlo.broadcast_in_dim" and _reuses_elements(maker)


def _reuses_elements(op: Operation) -> bool:
    """Whether it reads elements of its first operand more than once, or only some, at dynamic indices."""
    if name_of(op) == "stablehlo.broadcast_in_dim":
        return _elements(op.results[0]) > _elements(op.operands[0])
    return name_of(op) == "stablehlo.dynamic_slice"


_MOST_PIECES = 8
_WIDE = 64
"""Rows of at least this many elements are copied as a whole, which is faster than computing them in the reader."""


def _is_copied_row_by_row(op: Operation) -> bool:
    if name_of(op) != "stablehlo.concatenate":
        return False
    dimension = op.properties["dimension"]
    assert isinstance(dimension, IntegerAttr), "concatenate is registered and verified"
    shapes = [operand.type.get_shape() for operand in op.operands if is_tensor(operand.type)]
    along_rows = dimension.value.data == len(shapes[0]) - 1
    return len(shapes) > _MOST_PIECES or (along_rows and any(shape[-1] >= _WIDE for shape in shapes))


def _element(value: SSAValue) -> object:
    return value.type.element_type if is_tensor(value.type) else None


def _elements(value: SSAValue) -> int:
    count = 1
    if is_tensor(value.type):
        for size in value.type.get_shape():
            count *= size
    return count
