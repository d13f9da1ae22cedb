"""Floating point operations per operation, counted as XLA's cost analysis does: a multiply-add is two."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from ..dialects.stablehlo.attributes import DotAttr
from .names import name_of

# Data movement costs no arithmetic.
_FREE_STABLEHLO = """
bitcast_convert broadcast_in_dim concatenate constant convert gather iota optimization_barrier reshape slice transpose
while
""".split()

FREE = frozenset(f"stablehlo.{name}" for name in _FREE_STABLEHLO) | {"recompute.token", "recompute.depend"}


def _elements(type_: Attribute) -> int:
    return prod(type_.get_shape()) if isinstance(type_, TensorType) else 1


def _dot_flops(op: Operation) -> int:
    """2 x result elements x contracted elements."""
    left = op.operands[0].type
    numbers = op.properties["dot_dimension_numbers"]
    assert isinstance(left, TensorType) and isinstance(numbers, DotAttr), "dot_general is registered and verified"
    shape = left.get_shape()
    contracted = prod(shape[dimension] for dimension in numbers.data.lhs_contracting_dimensions)
    return 2 * _elements(op.results[0].type) * contracted


def flops(op: Operation) -> int:
    """FLOPs of one execution. A loop body counts once, because its trip count is not known here."""
    name = name_of(op)
    if name in FREE:
        return sum(flops(inner) for region in op.regions for block in region.blocks for inner in block.ops)
    if name == "stablehlo.dot_general":
        return _dot_flops(op)
    if name == "stablehlo.reduce":
        return sum(_elements(value.type) for value in op.operands[: len(op.results)])
    return sum(_elements(result.type) for result in op.results)
