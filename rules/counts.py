"""How many floating point operations an operation does, and how often its regions run.

Counted as XLA's cost analysis does: a multiply-add is two.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.stablehlo.records import DotAttr
from ..support.type_guards import is_integer_array, is_shaped, is_tensor
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


def reductions(op: Operation) -> int:
    """How often a reduction combines two elements: the first one of each result is there already."""
    return max(elements(op.operands[0].type) - elements(op.results[0].type), 0)


def scattered(op: Operation) -> int:
    """How often a scatter combines: once for each element of the first update."""
    return elements(op.operands[len(op.results) + 1].type)


def comparisons(op: Operation) -> int:
    """n x log2 n for the elements of the first operand, whatever the comparator and whatever is sorted along."""
    count = elements(op.operands[0].type)
    return count * max(count - 1, 0).bit_length()


def transform(op: Operation) -> int:
    """Of an fft: 8 for each element of the operand and each level; several dimensions multiply their levels."""
    lengths = op.properties["fft_length"]
    assert is_integer_array(lengths), "fft is registered and verified"
    return 8 * prod(max(length.bit_length() - 1, 0) for length in lengths.get_values()) * elements(op.operands[0].type)


def factorization(op: Operation) -> int:
    """Of a cholesky: n cubed thirds for each matrix."""
    shape = op.operands[0].type
    assert is_tensor(shape), "cholesky is registered and verified"
    return elements(shape) * shape.get_shape()[-1] // 3


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
