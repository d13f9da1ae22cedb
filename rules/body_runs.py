"""Functions that count the runs of an operation's regions, such as the combiner of a reduction."""

from __future__ import annotations

from math import prod

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.chlo.scan import ScanOp
from ..support.type_guards import is_integer_array, is_shaped


def elements(type_: Attribute) -> int:
    """Return the number of elements of a shaped type; 1 for any other type."""
    return prod(type_.get_shape()) if is_shaped(type_) else 1


def scan_iterations(op: Operation) -> int:
    """Return the number of times that `chlo.scan` runs its body; 1 if the number is unknown."""
    assert isinstance(op, ScanOp), "scan is registered and verified"
    return max(op.length, 0) if op.length != DYNAMIC_INDEX else 1


def reduce_combinations(op: Operation) -> int:
    """Return the number of times that a reduction combines two elements: the number of input elements minus the number
    of result elements."""
    return max(elements(op.operands[0].type) - elements(op.results[0].type), 0)


def scatter_combinations(op: Operation) -> int:
    """Return the number of times that a scatter combines two elements: once for each element of the updates."""
    return elements(op.operands[len(op.results) + 1].type)


def loop_points(op: Operation) -> int:
    """Return the number of times that the body of a structured operation runs: once for each point of its iteration
    space.

    If the loop bounds are unknown, this is the number of elements of the largest operand.
    """
    if isinstance(op, LinalgStructuredOperation) and all(extent >= 0 for extent in op.get_static_shapes()):
        return prod(op.get_static_loop_ranges())
    return max((elements(value.type) for value in op.operands), default=1)


def trip_count(op: Operation) -> int:
    """Return the trip count of `scf.for` if its bounds and step are constants; otherwise 1."""
    low, high, step = (_constant(value) for value in op.operands[:3])
    if low is None or high is None or step is None or step <= 0:
        return 1
    return max(0, -((low - high) // step))


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def reduce_window_combinations(op: Operation) -> int:
    """Return the number of times that `reduce_window` combines two elements: the window size minus one for each result
    element."""
    return (_window_size(op) - 1) * elements(op.results[0].type)


def select_comparisons(op: Operation) -> int:
    """Return the number of comparisons of `select_and_scatter`: the window size minus one for each source element."""
    return (_window_size(op) - 1) * scatter_additions(op)


def scatter_additions(op: Operation) -> int:
    """Return the number of additions of `select_and_scatter`: one for each source element."""
    return elements(op.operands[1].type)


def _window_size(op: Operation) -> int:
    """Return the number of elements in a pooling window."""
    sizes = op.properties.get("window_dimensions")
    return prod(sizes.get_values()) if sizes is not None and is_integer_array(sizes) else 1
