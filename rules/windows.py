"""How much work a window does that moves over a tensor: convolutions and pooling.

Counted as XLA's cost analysis does: places where a window lies over padding, or between elements, do no work.
"""

from __future__ import annotations

from math import gcd, prod

from xdsl.ir import Operation

from ..dialects.stablehlo.labels import ConvolutionAttr
from ..dialects.stablehlo.moves import Window
from ..dialects.stablehlo.moves import windows as windows_of
from ..support.type_guards import is_integer_array, is_tensor
from .counts import elements


def convolution(op: Operation) -> int:
    """2 x result elements, places apart, x input features of a group x what the window meets at all its places."""
    left, kernel, result = op.operands[0].type, op.operands[1].type, op.results[0].type
    numbers = op.properties["dimension_numbers"]
    assert is_tensor(left) and is_tensor(kernel) and is_tensor(result), "registered and verified"
    assert isinstance(numbers, ConvolutionAttr), "registered and verified"
    labels = numbers.data
    given = dict(zip(labels.lhs, left.get_shape(), strict=True))
    weights = dict(zip(labels.rhs, kernel.get_shape(), strict=True))
    made = dict(zip(labels.result, result.get_shape(), strict=True))
    spatial = [label for label in labels.rhs if label not in ("i", "o")]
    spatial.sort(key=int)
    met = prod(
        meetings(move, given[label], made[label])
        for label, move in zip(spatial, _moves(op, [weights[label] for label in spatial]), strict=True)
    )
    return 2 * made["b"] * made["f"] * weights["i"] * met


def meetings(window: Window, extent: int, places: int) -> int:
    """Pairs of a place of the window and an element that lies under one of its points, along one dimension.

    `extent`: of the operand before padding and dilation. `places`: where the window is put. Point k of the window at
    place p lies at p x stride + k x dilation - padding; an element lies at each multiple of the base dilation.
    """
    step = gcd(window.stride, window.base_dilation)
    period = window.base_dilation // step
    inverse = pow(window.stride // step, -1, period)
    found = 0
    for point in range(window.size):
        shift = window.low - point * window.window_dilation
        if shift % step:
            continue
        first = max(-(-shift // window.stride), 0)
        last = min((shift + (extent - 1) * window.base_dilation) // window.stride, places - 1)
        first += (shift // step * inverse - first) % period
        found += max((last - first) // period + 1, 0)
    return found


def combined(op: Operation) -> int:
    """How often `reduce_window` combines two elements: of each place all of the window but one, padding too."""
    return (_extent(op) - 1) * elements(op.results[0].type)


def selected(op: Operation) -> int:
    """How often `select_and_scatter` compares: for each element of the source all of the window but one."""
    return (_extent(op) - 1) * added(op)


def added(op: Operation) -> int:
    """How often `select_and_scatter` adds: once for each element of the source."""
    return elements(op.operands[1].type)


def _extent(op: Operation) -> int:
    """Elements of the window of pooling."""
    sizes = op.properties.get("window_dimensions")
    return prod(sizes.get_values()) if sizes is not None and is_integer_array(sizes) else 1


def _moves(op: Operation, sizes: list[int]) -> list[Window]:
    strides, base, dilation = (
        value if (value := op.properties.get(name)) is not None and is_integer_array(value) else None
        for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    return windows_of(sizes, strides, op.properties.get("padding"), base, dilation)
