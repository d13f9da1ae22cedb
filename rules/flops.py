"""Floating point operations per operation, counted as XLA's cost analysis does: a multiply-add is two."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xdsl.ir import Attribute, Operation

from ..dialects.guards import is_tensor
from ..dialects.stablehlo.records import ConvolutionAttr, DotAttr
from .names import name_of

# Data movement costs no arithmetic.
_FREE_STABLEHLO = """
bitcast_convert broadcast_in_dim case concatenate constant convert dynamic_slice dynamic_update_slice gather if iota
optimization_barrier pad reshape reverse slice transpose while
""".split()

FREE = frozenset(f"stablehlo.{name}" for name in _FREE_STABLEHLO) | {"recompute.token", "recompute.depend"}


def _elements(type_: Attribute) -> int:
    return prod(type_.get_shape()) if is_tensor(type_) else 1


def _dot_flops(op: Operation) -> int:
    """2 x result elements x contracted elements."""
    left = op.operands[0].type
    numbers = op.properties["dot_dimension_numbers"]
    assert is_tensor(left) and isinstance(numbers, DotAttr), "dot_general is registered and verified"
    shape = left.get_shape()
    contracted = prod(shape[dimension] for dimension in numbers.data.lhs_contracting_dimensions)
    return 2 * _elements(op.results[0].type) * contracted


def _convolution_flops(op: Operation) -> int:
    """2 x result elements x kernel elements per output feature."""
    kernel = op.operands[1].type
    numbers = op.properties["dimension_numbers"]
    assert is_tensor(kernel) and isinstance(numbers, ConvolutionAttr), "registered and verified"
    features = kernel.get_shape()[numbers.data.rhs.index("o")]
    return 2 * _elements(op.results[0].type) * _elements(kernel) // max(features, 1)


def _reduce_flops(op: Operation) -> int:
    """One for each element that is reduced."""
    return sum(_elements(value.type) for value in op.operands[: len(op.results)])


_COUNTED: dict[str, Callable[[Operation], int]] = {
    "stablehlo.dot_general": _dot_flops,
    "stablehlo.convolution": _convolution_flops,
    "stablehlo.reduce": _reduce_flops,
}


def flops(op: Operation) -> int:
    """FLOPs of one execution: the table's, 0 for data movement, otherwise one for each result element.

    The body of a loop counts once, because its trip count is not known here.
    """
    name = name_of(op)
    if name in FREE:
        return sum(flops(inner) for region in op.regions for block in region.blocks for inner in block.ops)
    if name in _COUNTED:
        return _COUNTED[name](op)
    return sum(_elements(result.type) for result in op.results)
