"""`stablehlo.scatter`. StableHLO prints it in the generic form."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, BoolAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .checks import check_count, check_element, check_shape, check_sizes, element_of, shape_of
from .combiners import check_promotable, check_scalars, combined_types
from .constraints import Constraint, verify_constraints
from .index_vectors import (
    IndexingOp,
    adding_up,
    as_many,
    batched_alike,
    distinct,
    distinct_and_ordered,
    indices_are_integers,
    interleaved,
    ordered,
    rank_between,
    rank_of_indices,
    rank_sliced,
    vectors_apart_from,
    vectors_fill,
    vectors_lie_along_a_dimension,
    within,
)
from .records import ScatterAttr, ScatterDimensions
from .tensors import check_not_quantized_by_dimension


@irdl_op_definition
class ScatterOp(IndexingOp):
    """The inputs, with slices at the offsets of `scatter_indices` combined with the updates by the region."""

    name = "stablehlo.scatter"

    inputs = var_operand_def(TensorType)
    scatter_indices = operand_def(TensorType)
    updates = var_operand_def(TensorType)
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
        verify_constraints(self, CONSTRAINTS)


INSERTED, BATCHING = "inserted_window_dims", "input_batching_dims"


def _check_numbers(values: Sequence[SSAValue]) -> None:
    for value in values:
        check_not_quantized_by_dimension(value.type)


def _check_same_shapes(subject: str, values: Sequence[SSAValue]) -> None:
    for value in values:
        check_shape(subject, shape_of(value), shape_of(values[0]))


def _check_updates(op: ScatterOp) -> None:
    """Check that updates have the batch extents of the indices, and windows no larger than the inputs."""
    dropped, placed = op.dimensions(INSERTED, BATCHING), op.numbers.update_window_dims
    limits = [extent for dimension, extent in enumerate(shape_of(op.sliced)) if dimension not in dropped]
    update = shape_of(op.updates[0])
    check_shape("an update", update, interleaved([update[dimension] for dimension in placed], op.batch(), placed))
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
        raise VerifyException("there is no input")
    check_count("results", len(op.outputs), len(op.inputs))


CONSTRAINTS: tuple[Constraint[ScatterOp], ...] = (
    Constraint("C5", _check_counts),
    Constraint("I1", lambda op: _check_numbers(op.inputs)),
    Constraint("I2", indices_are_integers),
    Constraint("I3", lambda op: _check_numbers(op.updates)),
    Constraint("C1", lambda op: _check_same_shapes("an input", op.inputs)),
    Constraint("C3", lambda op: _check_same_shapes("an update", op.updates)),
    Constraint("C22", vectors_lie_along_a_dimension),
    Constraint("C23", lambda op: _check_elements(op, op.inputs, "an input")),
    Constraint("C6", lambda op: _check_elements(op, op.updates, "an update")),
    Constraint("C4", _check_rank_of_updates),
    Constraint("C2", adding_up("update_window_dims", INSERTED, BATCHING)),
    Constraint("C7", distinct_and_ordered("update_window_dims")),
    Constraint("C8", within("update_window_dims", rank_between("update_window_dims"))),
    Constraint("C9", distinct(INSERTED, BATCHING)),
    Constraint("C10", ordered(INSERTED)),
    Constraint("C11", within(INSERTED, rank_sliced)),
    Constraint("C12", ordered(BATCHING)),
    Constraint("C13", within(BATCHING, rank_sliced)),
    Constraint("C14", distinct("scatter_indices_batching_dims")),
    Constraint("C15", within("scatter_indices_batching_dims", rank_of_indices)),
    Constraint("C16", vectors_apart_from("scatter_indices_batching_dims")),
    Constraint("C17", as_many("scatter_indices_batching_dims", BATCHING)),
    Constraint("C18", batched_alike(BATCHING, "scatter_indices_batching_dims")),
    Constraint("C19", vectors_fill("scatter_dims_to_operand_dims")),
    Constraint("C20", distinct("scatter_dims_to_operand_dims", BATCHING)),
    Constraint("C21", within("scatter_dims_to_operand_dims", rank_sliced)),
    Constraint("C4", _check_updates),
    Constraint("C24", _check_results),
    Constraint("C25", _check_result_elements),
)
