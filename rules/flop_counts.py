"""Functions that count the FLOPs of operations from their types and attributes.

The counts follow XLA's cost analysis: a multiply-add is two FLOPs, and window points on padding or between dilated
elements require no FLOPs.
"""

from __future__ import annotations

from math import gcd, prod

from xdsl.ir import Operation

from ..dialects.chlo.ragged_dot import RaggedDotOp
from ..dialects.stablehlo.attributes import DotAttr
from ..dialects.stablehlo.convolution import ConvolutionAttr
from ..dialects.stablehlo.legacy import EinsumFormatOp
from ..dialects.stablehlo.windows import DimWindow
from ..dialects.stablehlo.windows import windows as windows_of
from ..support.type_guards import is_integer_array, is_tensor
from .body_runs import elements, reduce_combinations
from .facts import Count


def per_element(count: int) -> Count:
    """Return a function that counts `count` FLOPs for each element of the results of an operation."""
    return lambda op: count * sum(elements(result.type) for result in op.results)


def per_operand_element(count: int) -> Count:
    """Return a function that counts `count` FLOPs for each element of the first operand of an operation."""
    return lambda op: count * elements(op.operands[0].type)


def dot(op: Operation) -> int:
    """Count the FLOPs of `dot_general`: 2 x result elements x contracted elements."""
    left = op.operands[0].type
    numbers = op.properties["dot_dimension_numbers"]
    assert is_tensor(left) and isinstance(numbers, DotAttr), "dot_general is registered and verified"
    shape = left.get_shape()
    contracted = prod(shape[dimension] for dimension in numbers.data.lhs_contracting_dimensions)
    return 2 * elements(op.results[0].type) * contracted


def ragged_dot(op: Operation) -> int:
    """Count the FLOPs of `chlo.ragged_dot`: 2 x result elements x contracted elements. Each element contributes only to
    the product of its own group.

    XLA's decomposition needs more FLOPs: it computes the whole product once for each group and masks it.
    """
    assert isinstance(op, RaggedDotOp), "ragged_dot is registered and verified"
    left, result = op.lhs.type, op.result.type
    assert is_tensor(left) and is_tensor(result), "the definition of the operation requires tensors"
    contracting = op.numbers.lhs_contracting_dimensions
    contracted = prod(left.get_shape()[dimension] for dimension in contracting)
    groups = result.get_shape()[0] if op.ragged_dimension in contracting else 1
    return 2 * elements(result) * contracted // max(groups, 1)


def legacy_dot(op: Operation) -> int:
    """Count the FLOPs of `stablehlo.dot`: 2 x result elements x contracted elements."""
    left = op.operands[0].type
    assert is_tensor(left), "dot is registered and verified"
    return 2 * elements(op.results[0].type) * left.get_shape()[-1]


def einsum(op: Operation) -> int:
    """Count the FLOPs of an einsum: 2 x result elements x contracted extents, or the number of additions if it has a
    single operand."""
    assert isinstance(op, EinsumFormatOp), "einsum is registered and verified"
    if len(op.operands) == 1:
        return reduce_combinations(op)
    equation = op.equation
    return 2 * elements(op.result.type) * prod(equation.extents[label] for label in equation.contracted)


def sort_comparisons(op: Operation) -> int:
    """Count the FLOPs of a sort: n x log2 n for the n elements of the first operand, whatever the comparator."""
    count = elements(op.operands[0].type)
    return count * max(count - 1, 0).bit_length()


def fft(op: Operation) -> int:
    """Count the FLOPs of an FFT: 8 x elements x the product of the logarithms (base 2) of the transformed extents."""
    lengths = op.properties["fft_length"]
    assert is_integer_array(lengths), "fft is registered and verified"
    return 8 * prod(max(length.bit_length() - 1, 0) for length in lengths.get_values()) * elements(op.operands[0].type)


def cholesky(op: Operation) -> int:
    """Count the FLOPs of a Cholesky factorization: n^3 / 3 for each n x n matrix."""
    shape = op.operands[0].type
    assert is_tensor(shape), "cholesky is registered and verified"
    return elements(shape) * shape.get_shape()[-1] // 3


def triangular_solve(op: Operation) -> int:
    """Count the FLOPs of a triangular solve with n x n matrices: 2 n for each element of the result."""
    a = op.operands[0].type
    assert is_tensor(a), "triangular_solve is registered and verified"
    return 2 * elements(op.results[0].type) * a.get_shape()[-1]


def convolution(op: Operation) -> int:
    """Count the FLOPs of a convolution: 2 x batch x output features x input features per group x window hits.

    A window hit is a pair of a window position and a point of the kernel that, at this position, lies on an element of
    the operand.
    """
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
        window_hits(window, operand_sizes[label], result_sizes[label])
        for label, window in zip(spatial, _windows(op, [kernel_sizes[label] for label in spatial]), strict=True)
    )
    return 2 * result_sizes["b"] * result_sizes["f"] * kernel_sizes["i"] * points


def window_hits(window: DimWindow, extent: int, places: int) -> int:
    """Return the number of window hits along one dimension: pairs of a window position and a point of the window that,
    at this position, lies on an element.

    Point k of the window at position p has the coordinate p x stride + k x dilation - padding. The elements have the
    multiples of the base dilation as coordinates.

    Args:
        window: The window along the dimension.
        extent: Extent of the operand, before padding and dilation.
        places: Number of window positions.
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


def _windows(op: Operation, sizes: list[int]) -> list[DimWindow]:
    strides, base, dilation = (
        value if (value := op.properties.get(name)) is not None and is_integer_array(value) else None
        for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    return windows_of(sizes, strides, op.properties.get("padding"), base, dilation)
