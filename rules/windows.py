"""Work of windows that move over a tensor: convolutions and pooling.

The counts follow XLA's cost analysis: window points over padding, or between dilated elements, do no work.
"""

from __future__ import annotations

from math import gcd, prod

from xdsl.ir import Operation

from ..dialects.stablehlo.labels import ConvolutionAttr
from ..dialects.stablehlo.moves import DimWindow
from ..dialects.stablehlo.moves import windows as windows_of
from ..support.type_guards import is_integer_array, is_tensor
from .counts import elements


def convolution(op: Operation) -> int:
    """2 x batch x output features x input features of a group x elements under the window at all its places."""
    left, kernel, result = op.operands[0].type, op.operands[1].type, op.results[0].type
    numbers = op.properties["dimension_numbers"]
    assert is_tensor(left) and is_tensor(kernel) and is_tensor(result), "registered and verified"
    assert isinstance(numbers, ConvolutionAttr), "registered and verified"
    labels = numbers.data
    operand_sizes = dict(zip(labels.lhs, left.get_shape(), strict=True))
    kernel_sizes = dict(zip(labels.rhs, kernel.get_shape(), strict=True))
    result_sizes = dict(zip(labels.result, result.get_shape(), strict=True))
    spatial = [label for label in labels.rhs if label not in ("i", "o")]
    spatial.sort(key=int)
    points = prod(
        meetings(window, operand_sizes[label], result_sizes[label])
        for label, window in zip(spatial, _windows(op, [kernel_sizes[label] for label in spatial]), strict=True)
    )
    return 2 * result_sizes["b"] * result_sizes["f"] * kernel_sizes["i"] * points


def meetings(window: DimWindow, extent: int, places: int) -> int:
    """The number of pairs of a window point and the element under it, over all places, along one dimension.

    extent: Of the operand, before padding and dilation. places: The number of places of the window. Point k of the
    window at place p is at p x stride + k x dilation - padding; elements are at the multiples of the base dilation.
    """
    step = gcd(window.stride, window.base_dilation)
    period = window.base_dilation // step
    inverse = pow(window.stride // step, -1, period)
    pairs = 0
    for point in range(window.size):
        shift = window.low - point * window.window_dilation
        if shift % step:
            continue
        first = max(-(-shift // window.stride), 0)
        last = min((shift + (extent - 1) * window.base_dilation) // window.stride, places - 1)
        first += (shift // step * inverse - first) % period
        pairs += max((last - first) // period + 1, 0)
    return pairs


def combined(op: Operation) -> int:
    """The number of times that `reduce_window` combines two elements: per place one less than the window, with
    padding."""
    return (_extent(op) - 1) * elements(op.results[0].type)


def selected(op: Operation) -> int:
    """The number of comparisons of `select_and_scatter`: per element of the source one less than the window."""
    return (_extent(op) - 1) * added(op)


def added(op: Operation) -> int:
    """The number of additions of `select_and_scatter`: one per element of the source."""
    return elements(op.operands[1].type)


def _extent(op: Operation) -> int:
    """The number of elements of a pooling window."""
    sizes = op.properties.get("window_dimensions")
    return prod(sizes.get_values()) if sizes is not None and is_integer_array(sizes) else 1


def _windows(op: Operation, sizes: list[int]) -> list[DimWindow]:
    strides, base, dilation = (
        value if (value := op.properties.get(name)) is not None and is_integer_array(value) else None
        for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    return windows_of(sizes, strides, op.properties.get("padding"), base, dilation)
