"""Gather and scatter. StableHLO prints them in the generic form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX, BoolAttr, DenseArrayBase, IndexType, IntegerType, TensorType, i64
from xdsl.ir import SSAValue
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

from .attributes import Dimensions, GatherAttr, GatherDimensions, ScatterAttr, ScatterDimensions
from .checks import (
    Constraint,
    Shape,
    check_count,
    check_distinct,
    check_element,
    check_ordered,
    check_shape,
    check_sizes,
    check_within,
    element_of,
    shape_of,
    verify_constraints,
)
from .dynamic_shapes import check_dimension_tensor, check_static_length, constant_integers
from .reduction import check_promotable, check_scalars, combined_types
from .tensors import check_not_quantized_by_dimension, numbers, tensors


class IndexingOp(IRDLOperation):
    """Base class of operations that read or write slices of tensors. Index vectors give the offsets of the slices."""

    @property
    @abstractmethod
    def numbers(self) -> GatherDimensions | ScatterDimensions:
        """The dimension numbers."""

    @property
    @abstractmethod
    def sliced(self) -> SSAValue:
        """The tensor whose slices are read or written; if there are several, the first one."""

    @property
    @abstractmethod
    def indices(self) -> SSAValue:
        """The tensor that contains the index vectors."""

    def dimensions(self, *names: str) -> Dimensions:
        """Return the dimensions that the fields with these names list, concatenated."""
        return tuple(dimension for name in names for dimension in getattr(self.numbers, name))

    def batch(self) -> list[int]:
        """Return the extents of the index tensor, except the length of the index vectors."""
        indices = shape_of(self.indices)
        return [extent for dimension, extent in enumerate(indices) if dimension != self.numbers.index_vector_dim]


Check: TypeAlias = Callable[[IndexingOp], None]


def rank_of_sliced(op: IndexingOp) -> int:
    return len(shape_of(op.sliced))


def rank_of_indices(op: IndexingOp) -> int:
    return len(shape_of(op.indices))


def rank_of_windows(window: str) -> Callable[[IndexingOp], int]:
    """Return a function that computes the rank of an operation's batched windows.

    Batched windows have the batch dimensions, and the dimensions in the property `window`.
    """
    return lambda op: len(op.batch()) + len(op.dimensions(window))


def requires_within(name: str, rank: Callable[[IndexingOp], int]) -> Check:
    return lambda op: check_within(name, op.dimensions(name), rank(op))


def requires_order(name: str) -> Check:
    return lambda op: check_ordered(name, op.dimensions(name))


def requires_distinct(*names: str) -> Check:
    return lambda op: check_distinct(" and ".join(names), op.dimensions(*names))


def requires_distinct_and_ordered(name: str) -> Check:
    def check(op: IndexingOp) -> None:
        check_distinct(name, op.dimensions(name))
        check_ordered(name, op.dimensions(name))

    return check


def requires_all_dimensions(*names: str) -> Check:
    """Return a check that the fields `names` list as many dimensions as the sliced tensor has."""
    return lambda op: check_count(" and ".join(names), len(op.dimensions(*names)), rank_of_sliced(op))


def requires_equal_counts(name: str, other: str) -> Check:
    return lambda op: check_count(name, len(op.dimensions(name)), len(op.dimensions(other)))


def requires_equal_batches(of_sliced: str, of_indices: str) -> Check:
    """Return a check that the sliced tensor and the indices have the same extents along their batching dimensions."""

    def check(op: IndexingOp) -> None:
        sliced, indices = shape_of(op.sliced), shape_of(op.indices)
        actual = [sliced[dimension] for dimension in op.dimensions(of_sliced)]
        expected = [indices[dimension] for dimension in op.dimensions(of_indices)]
        check_shape(f"the part along {of_sliced}", actual, expected)

    return check


def check_index_elements(op: IndexingOp) -> None:
    element = element_of(op.indices)
    if not isinstance(element, IntegerType | IndexType):
        raise VerifyException(f"the indices have elements of type {element}, expected integers")


def check_index_vector_dim(op: IndexingOp) -> None:
    """Check that `index_vector_dim` is in range. If `index_vector_dim` equals the rank of the indices, index vectors
    have length 1."""
    if not 0 <= op.numbers.index_vector_dim <= rank_of_indices(op):
        raise VerifyException(f"index_vector_dim is {op.numbers.index_vector_dim}, expected 0 to {rank_of_indices(op)}")


def requires_vector_length(name: str) -> Check:
    """Return a check that an index vector has one index for each dimension in the field `name`."""

    def check(op: IndexingOp) -> None:
        dimension = op.numbers.index_vector_dim
        shape = shape_of(op.indices)
        length = shape[dimension] if dimension < len(shape) else 1
        check_shape("an index vector", [length], [len(op.dimensions(name))])

    return check


def requires_no_vector_dimension(name: str) -> Check:
    def check(op: IndexingOp) -> None:
        if op.numbers.index_vector_dim in op.dimensions(name):
            raise VerifyException(f"{name} must not contain index_vector_dim {op.numbers.index_vector_dim}")

    return check


def interleave(window: Shape, batch: Shape, window_dimensions: Shape) -> list[int]:
    """Return a shape with the extents `window` at the positions `window_dimensions`, and `batch` at the others."""
    windows, batches = iter(window), iter(batch)
    rank = len(window) + len(batch)
    return [next(windows if dimension in window_dimensions else batches) for dimension in range(rank)]


@irdl_op_definition
class GatherOp(IndexingOp):
    """Return slices of the operand. Each vector in `start_indices` is the offset of one slice."""

    name = "stablehlo.gather"

    operand = operand_def(numbers("I1"))
    start_indices = operand_def(numbers("I2"))
    dimension_numbers = prop_def(GatherAttr)
    slice_sizes = prop_def(DenseArrayBase.constr(i64))
    indices_are_sorted = opt_prop_def(BoolAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    @property
    def numbers(self) -> GatherDimensions:
        return self.dimension_numbers.data

    @property
    def sliced(self) -> SSAValue:
        return self.operand

    @property
    def indices(self) -> SSAValue:
        return self.start_indices

    def verify_(self) -> None:
        verify_constraints(self, GATHER_CONSTRAINTS)


COLLAPSED, BATCHING = "collapsed_slice_dims", "operand_batching_dims"


def _check_single(op: GatherOp, name: str) -> None:
    """Check that slices have at most one element along the dimensions in the field `name`. The result lacks these
    dimensions."""
    sizes = [op.slice_sizes.get_values()[dimension] for dimension in op.dimensions(name)]
    if any(size > 1 for size in sizes):
        raise VerifyException(f"slice_sizes are {sizes} along {name} {list(op.dimensions(name))}, expected 0 or 1")


def _check_result(op: GatherOp) -> None:
    dropped = op.dimensions(COLLAPSED, BATCHING)
    window = [size for dimension, size in enumerate(op.slice_sizes.get_values()) if dimension not in dropped]
    check_shape("the result", shape_of(op.result), interleave(window, op.batch(), op.numbers.offset_dims))


GATHER_CONSTRAINTS: tuple[Constraint[GatherOp], ...] = (
    Constraint("I2", check_index_elements),
    Constraint("C1", requires_all_dimensions("offset_dims", COLLAPSED, BATCHING)),
    Constraint("C2", check_index_vector_dim),
    Constraint("C3", requires_vector_length("start_index_map")),
    Constraint("C4", requires_distinct_and_ordered("offset_dims")),
    Constraint("C5", requires_within("offset_dims", rank_of_windows("offset_dims"))),
    Constraint("C6", requires_distinct(COLLAPSED, BATCHING)),
    Constraint("C7", requires_order(COLLAPSED)),
    Constraint("C8", requires_within(COLLAPSED, rank_of_sliced)),
    Constraint("C10", requires_order(BATCHING)),
    Constraint("C11", requires_within(BATCHING, rank_of_sliced)),
    Constraint("C13", requires_distinct("start_indices_batching_dims")),
    Constraint("C14", requires_within("start_indices_batching_dims", rank_of_indices)),
    Constraint("C15", requires_no_vector_dimension("start_indices_batching_dims")),
    Constraint("C16", requires_equal_counts("start_indices_batching_dims", BATCHING)),
    Constraint("C17", requires_equal_batches(BATCHING, "start_indices_batching_dims")),
    Constraint("C18", requires_distinct("start_index_map", BATCHING)),
    Constraint("C19", requires_within("start_index_map", rank_of_sliced)),
    Constraint("C20", lambda op: check_count("slice_sizes", len(op.slice_sizes), rank_of_sliced(op))),
    Constraint("C9", lambda op: _check_single(op, COLLAPSED)),
    Constraint("C12", lambda op: _check_single(op, BATCHING)),
    Constraint("C21", lambda op: check_sizes("a slice", op.slice_sizes.get_values(), shape_of(op.operand))),
    Constraint("C22", _check_result),
    Constraint("C23", lambda op: check_element("the result", element_of(op.result), element_of(op.operand))),
)


@irdl_op_definition
class DynamicGatherOp(IndexingOp):
    """Gather as `gather` does, with the slice sizes given by an operand."""

    name = "stablehlo.dynamic_gather"

    operand = operand_def(numbers("I1"))
    start_indices = operand_def(numbers("I2"))
    slice_sizes = operand_def(numbers("I3"))
    dimension_numbers = prop_def(GatherAttr)
    indices_are_sorted = opt_prop_def(BoolAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    @property
    def numbers(self) -> GatherDimensions:
        return self.dimension_numbers.data

    @property
    def sliced(self) -> SSAValue:
        return self.operand

    @property
    def indices(self) -> SSAValue:
        return self.start_indices

    @property
    def sizes(self) -> list[int]:
        """The slice sizes; all of them are `DYNAMIC_INDEX` if the operand is not constant."""
        return constant_integers(self.slice_sizes) or [DYNAMIC_INDEX] * rank_of_sliced(self)

    def verify_(self) -> None:
        verify_constraints(self, DYNAMIC_CONSTRAINTS)


def _check_single_size(op: DynamicGatherOp, name: str) -> None:
    sizes = [op.sizes[dimension] for dimension in op.dimensions(name)]
    if any(size > 1 for size in sizes):
        raise VerifyException(f"slice_sizes are {sizes} along {name} {list(op.dimensions(name))}, expected 0 or 1")


def _check_known_sizes(op: DynamicGatherOp) -> None:
    if (sizes := constant_integers(op.slice_sizes)) is not None:
        check_sizes("a slice", sizes, shape_of(op.operand))


def _check_dynamic_result(op: DynamicGatherOp) -> None:
    dropped = op.dimensions(COLLAPSED, BATCHING)
    window = [size for dimension, size in enumerate(op.sizes) if dimension not in dropped]
    check_shape("the result", shape_of(op.result), interleave(window, op.batch(), op.numbers.offset_dims))


# The specification defines no batching dimensions here. Their constraints are those of `gather`, without labels.
DYNAMIC_CONSTRAINTS: tuple[Constraint[DynamicGatherOp], ...] = (
    Constraint("I2", check_index_elements),
    Constraint("I3", lambda op: check_static_length("slice_sizes", op.slice_sizes)),
    Constraint("C1", requires_all_dimensions("offset_dims", COLLAPSED, BATCHING)),
    Constraint("C2", check_index_vector_dim),
    Constraint("C3", requires_vector_length("start_index_map")),
    Constraint("C4", requires_distinct_and_ordered("offset_dims")),
    Constraint("C5", requires_within("offset_dims", rank_of_windows("offset_dims"))),
    Constraint("C6", requires_distinct(COLLAPSED, BATCHING)),
    Constraint("C6", requires_order(COLLAPSED)),
    Constraint("C7", requires_within(COLLAPSED, rank_of_sliced)),
    Constraint("batching", requires_order(BATCHING)),
    Constraint("batching", requires_within(BATCHING, rank_of_sliced)),
    Constraint("batching", requires_distinct("start_indices_batching_dims")),
    Constraint("batching", requires_within("start_indices_batching_dims", rank_of_indices)),
    Constraint("batching", requires_no_vector_dimension("start_indices_batching_dims")),
    Constraint("batching", requires_equal_counts("start_indices_batching_dims", BATCHING)),
    Constraint("batching", requires_equal_batches(BATCHING, "start_indices_batching_dims")),
    Constraint("C9", requires_distinct("start_index_map", BATCHING)),
    Constraint("C10", requires_within("start_index_map", rank_of_sliced)),
    Constraint("C11", lambda op: check_dimension_tensor("slice_sizes", op.slice_sizes, rank_of_sliced(op))),
    Constraint("C8", lambda op: _check_single_size(op, COLLAPSED)),
    Constraint("batching", lambda op: _check_single_size(op, BATCHING)),
    Constraint("C12", _check_known_sizes),
    Constraint("C13", _check_dynamic_result),
    Constraint("C14", lambda op: check_element("the result", element_of(op.result), element_of(op.operand))),
)


@irdl_op_definition
class ScatterOp(IndexingOp):
    """Return the inputs, after combining slices of them with the updates.

    Each vector in `scatter_indices` is the offset of one slice. The region combines its elements with an update.
    """

    name = "stablehlo.scatter"

    inputs = var_operand_def(tensors("I1"))
    scatter_indices = operand_def(tensors("I2"))
    updates = var_operand_def(tensors("I3"))
    scatter_dimension_numbers = prop_def(ScatterAttr)
    indices_are_sorted = opt_prop_def(BoolAttr)
    unique_indices = opt_prop_def(BoolAttr)
    outputs = var_result_def(TensorType)
    update_computation = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)

    @property
    def numbers(self) -> ScatterDimensions:
        return self.scatter_dimension_numbers.data

    @property
    def sliced(self) -> SSAValue:
        return self.inputs[0]

    @property
    def indices(self) -> SSAValue:
        return self.scatter_indices

    def verify_(self) -> None:
        verify_constraints(self, SCATTER_CONSTRAINTS)


INSERTED, INPUT_BATCHING = "inserted_window_dims", "input_batching_dims"


def _check_numbers(values: Sequence[SSAValue]) -> None:
    for value in values:
        check_not_quantized_by_dimension(value.type)


def _check_same_shapes(subject: str, values: Sequence[SSAValue]) -> None:
    for value in values:
        check_shape(subject, shape_of(value), shape_of(values[0]))


def _check_updates(op: ScatterOp) -> None:
    """Check that updates have the batch extents of the indices, and that their windows do not exceed the inputs."""
    dropped = op.dimensions(INSERTED, INPUT_BATCHING)
    placed = op.numbers.update_window_dims
    limits = [extent for dimension, extent in enumerate(shape_of(op.sliced)) if dimension not in dropped]
    update = shape_of(op.updates[0])
    check_shape("an update", update, interleave([update[dimension] for dimension in placed], op.batch(), placed))
    windows = [
        (update[dimension], limit)
        for dimension, limit in zip(placed, limits, strict=True)
        if update[dimension] != DYNAMIC_INDEX
    ]
    check_sizes("a window", [size for size, _ in windows], [limit for _, limit in windows])


def _check_rank_of_updates(op: ScatterOp) -> None:
    check_count(
        "dimensions of an update",
        len(shape_of(op.updates[0])),
        len(op.batch()) + len(op.numbers.update_window_dims),
    )


def _check_elements(op: ScatterOp, operands: Sequence[SSAValue], subject: str) -> None:
    combined = combined_types(op.update_computation.block, len(op.inputs))
    check_scalars(combined)
    for value, type_ in zip(operands, combined, strict=True):
        check_promotable(subject, element_of(value), type_.element_type)


def _check_results(op: ScatterOp) -> None:
    for value, result in zip(op.inputs, op.outputs, strict=True):
        check_shape("a result", shape_of(result), shape_of(value))


def _check_result_elements(op: ScatterOp) -> None:
    for type_, result in zip(combined_types(op.update_computation.block, len(op.inputs)), op.outputs, strict=True):
        check_element("a result", element_of(result), type_.element_type)


def _check_counts(op: ScatterOp) -> None:
    if not op.inputs:
        raise VerifyException("there are no inputs, expected at least one")
    check_count("results", len(op.outputs), len(op.inputs))


SCATTER_CONSTRAINTS: tuple[Constraint[ScatterOp], ...] = (
    Constraint("C5", _check_counts),
    Constraint("I1", lambda op: _check_numbers(op.inputs)),
    Constraint("I2", check_index_elements),
    Constraint("I3", lambda op: _check_numbers(op.updates)),
    Constraint("C1", lambda op: _check_same_shapes("an input", op.inputs)),
    Constraint("C3", lambda op: _check_same_shapes("an update", op.updates)),
    Constraint("C22", check_index_vector_dim),
    Constraint("C23", lambda op: _check_elements(op, op.inputs, "an input")),
    Constraint("C6", lambda op: _check_elements(op, op.updates, "an update")),
    Constraint("C4", _check_rank_of_updates),
    Constraint("C2", requires_all_dimensions("update_window_dims", INSERTED, INPUT_BATCHING)),
    Constraint("C7", requires_distinct_and_ordered("update_window_dims")),
    Constraint("C8", requires_within("update_window_dims", rank_of_windows("update_window_dims"))),
    Constraint("C9", requires_distinct(INSERTED, INPUT_BATCHING)),
    Constraint("C10", requires_order(INSERTED)),
    Constraint("C11", requires_within(INSERTED, rank_of_sliced)),
    Constraint("C12", requires_order(INPUT_BATCHING)),
    Constraint("C13", requires_within(INPUT_BATCHING, rank_of_sliced)),
    Constraint("C14", requires_distinct("scatter_indices_batching_dims")),
    Constraint("C15", requires_within("scatter_indices_batching_dims", rank_of_indices)),
    Constraint("C16", requires_no_vector_dimension("scatter_indices_batching_dims")),
    Constraint("C17", requires_equal_counts("scatter_indices_batching_dims", INPUT_BATCHING)),
    Constraint("C18", requires_equal_batches(INPUT_BATCHING, "scatter_indices_batching_dims")),
    Constraint("C19", requires_vector_length("scatter_dims_to_operand_dims")),
    Constraint("C20", requires_distinct("scatter_dims_to_operand_dims", INPUT_BATCHING)),
    Constraint("C21", requires_within("scatter_dims_to_operand_dims", rank_of_sliced)),
    Constraint("C4", _check_updates),
    Constraint("C24", _check_results),
    Constraint("C25", _check_result_elements),
)


INDEXING = [GatherOp, DynamicGatherOp, ScatterOp]
