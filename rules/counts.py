"""How many floating point operations an operation does, and how often its regions run.

Counted as XLA's cost analysis does: a multiply-add is two.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.guards import is_shaped, is_tensor
from ..dialects.stablehlo.records import ConvolutionAttr, DotAttr
from .facts import Count


def elements(type_: Attribute) -> int:
    """Elements of a shaped type; one of any other."""
    return prod(type_.get_shape()) if is_shaped(type_) else 1


def per_element(count: int) -> Count:
    """So many for each element of the results."""
    return lambda op: count * sum(elements(result.type) for result in op.results)


def dot(op: Operation) -> int:
    """2 x result elements x contracted elements."""
    left = op.operands[0].type
    numbers = op.properties["dot_dimension_numbers"]
    assert is_tensor(left) and isinstance(numbers, DotAttr), "dot_general is registered and verified"
    shape = left.get_shape()
    contracted = prod(shape[dimension] for dimension in numbers.data.lhs_contracting_dimensions)
    return 2 * elements(op.results[0].type) * contracted


def convolution(op: Operation) -> int:
    """2 x result elements x kernel elements per output feature."""
    kernel = op.operands[1].type
    numbers = op.properties["dimension_numbers"]
    assert is_tensor(kernel) and isinstance(numbers, ConvolutionAttr), "registered and verified"
    features = kernel.get_shape()[numbers.data.rhs.index("o")]
    return 2 * elements(op.results[0].type) * elements(kernel) // max(features, 1)


def reduction(op: Operation) -> int:
    """One for each element that is reduced."""
    return sum(elements(value.type) for value in op.operands[: len(op.results)])


def loop_points(op: Operation) -> int:
    """How often the body of a structured operation runs: once for each point of its loops.

    The elements of the largest operand where the loops are not known.
    """
    if isinstance(op, LinalgStructuredOperation) and all(extent >= 0 for extent in op.get_static_shapes()):
        return prod(op.get_static_loop_ranges())
    return max((elements(value.type) for value in op.operands), default=1)


def trip_count(op: Operation) -> int:
    """Iterations of a counted loop whose bounds and step are constants; one where they are not."""
    low, high, step = (_constant(value) for value in op.operands[:3])
    if low is None or high is None or step is None or step <= 0:
        return 1
    return max(0, -((low - high) // step))


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None
