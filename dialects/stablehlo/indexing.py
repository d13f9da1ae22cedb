"""Gather and scatter. StableHLO prints both in the generic form."""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerAttr, IntegerType, TensorType, i64
from xdsl.ir import Operation
from xdsl.irdl import (
    IRDLOperation,
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .checks import Shape, check_dimensions, check_element, check_shape, check_types, element_of, shape_of
from .records import GatherAttr, ScatterAttr
from .reduction import check_combiner

BOOL = IntegerAttr[IntegerType]


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Slices of the operand, each at the offset that a vector of `start_indices` holds."""

    name = "stablehlo.gather"

    operand = operand_def(TensorType)
    start_indices = operand_def(TensorType)
    dimension_numbers = prop_def(GatherAttr)
    slice_sizes = prop_def(DenseArrayBase.constr(i64))
    indices_are_sorted = opt_prop_def(BOOL)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        numbers = self.dimension_numbers.data
        shape, sizes = shape_of(self.operand), self.slice_sizes.get_values()
        dropped = numbers.collapsed_slice_dims + numbers.operand_batching_dims
        check_element("the result", element_of(self.result), element_of(self.operand))
        check_dimensions("the dimensions that are dropped", dropped, len(shape))
        check_dimensions("offset_dims", numbers.offset_dims, len(shape_of(self.result)))
        if len(sizes) != len(shape):
            raise VerifyException(f"slice_sizes {list(sizes)} are needed for each dimension of {self.operand.type}")
        for size, extent in zip(sizes, shape, strict=True):
            if size < 0 or (extent != DYNAMIC_INDEX and size > extent):
                raise VerifyException(f"a slice of {size} does not fit an extent of {extent}")
        window = [size for dimension, size in enumerate(sizes) if dimension not in dropped]
        batch = batch_shape(shape_of(self.start_indices), numbers.index_vector_dim)
        check_shape("the result", shape_of(self.result), interleaved(window, batch, numbers.offset_dims))


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """The inputs, with slices at the offsets of `scatter_indices` combined with the updates by the region."""

    name = "stablehlo.scatter"

    inputs = var_operand_def(TensorType)
    scatter_indices = operand_def(TensorType)
    updates = var_operand_def(TensorType)
    scatter_dimension_numbers = prop_def(ScatterAttr)
    indices_are_sorted = opt_prop_def(BOOL)
    unique_indices = opt_prop_def(BOOL)
    outputs = var_result_def(TensorType)
    update_computation = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)

    def verify_(self) -> None:
        numbers = self.scatter_dimension_numbers.data
        if len(self.inputs) != len(self.outputs):
            raise VerifyException("each input has one result")
        for value, result in zip(self.inputs, self.outputs, strict=True):
            check_types("a result", result.type, value.type)
        batch = batch_shape(shape_of(self.scatter_indices), numbers.index_vector_dim)
        for update in self.updates:
            check_dimensions("update_window_dims", numbers.update_window_dims, len(shape_of(update)))
            free = [n for d, n in enumerate(shape_of(update)) if d not in numbers.update_window_dims]
            check_shape("the scattered part of an update", free, batch)
        check_combiner(self.update_computation.block, [element_of(value) for value in self.inputs])


def batch_shape(indices: Shape, vector_dimension: int) -> list[int]:
    """The extents of an index tensor without the dimension along which one index vector lies."""
    return [extent for dimension, extent in enumerate(indices) if dimension != vector_dimension]


def interleaved(window: Shape, batch: Shape, window_dimensions: Shape) -> list[int]:
    """A shape with the window's extents at `window_dimensions` and the batch's in the other places, in order."""
    windows, batches = iter(window), iter(batch)
    rank = len(window) + len(batch)
    if len(window_dimensions) != len(window):
        raise VerifyException(f"{len(window)} dimensions of a slice are kept, but {len(window_dimensions)} are placed")
    return [next(windows if dimension in window_dimensions else batches) for dimension in range(rank)]


INDEXING: list[type[Operation]] = [GatherOp, ScatterOp]
