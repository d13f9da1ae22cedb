"""`stablehlo.gather` and `stablehlo.dynamic_gather`. StableHLO prints both in the generic form."""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, BoolAttr, DenseArrayBase, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .checks import check_count, check_element, check_shape, check_sizes, element_of, shape_of
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
from .records import GatherAttr, GatherDimensions
from .shape_operands import check_dimension_tensor, check_fixed_length, constant_integers
from .tensors import NUMBERS


@irdl_op_definition
class GatherOp(IndexingOp):
    """Slices of the operand, each at the offset of one vector of `start_indices`."""

    name = "stablehlo.gather"

    operand = operand_def(NUMBERS)
    start_indices = operand_def(NUMBERS)
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
        verify_constraints(self, CONSTRAINTS)


COLLAPSED, BATCHING = "collapsed_slice_dims", "operand_batching_dims"


def _check_single(op: GatherOp, name: str) -> None:
    """Check that a slice has at most one element along the dimensions that are dropped from it."""
    sizes = [op.slice_sizes.get_values()[dimension] for dimension in op.dimensions(name)]
    if any(size > 1 for size in sizes):
        raise VerifyException(f"slice_sizes are {sizes} along {name} {list(op.dimensions(name))}, expected 0 or 1")


def _check_result(op: GatherOp) -> None:
    dropped = op.dimensions(COLLAPSED, BATCHING)
    window = [size for dimension, size in enumerate(op.slice_sizes.get_values()) if dimension not in dropped]
    check_shape("the result", shape_of(op.result), interleaved(window, op.batch(), op.numbers.offset_dims))


CONSTRAINTS: tuple[Constraint[GatherOp], ...] = (
    Constraint("I2", indices_are_integers),
    Constraint("C1", adding_up("offset_dims", COLLAPSED, BATCHING)),
    Constraint("C2", vectors_lie_along_a_dimension),
    Constraint("C3", vectors_fill("start_index_map")),
    Constraint("C4", distinct_and_ordered("offset_dims")),
    Constraint("C5", within("offset_dims", rank_between("offset_dims"))),
    Constraint("C6", distinct(COLLAPSED, BATCHING)),
    Constraint("C7", ordered(COLLAPSED)),
    Constraint("C8", within(COLLAPSED, rank_sliced)),
    Constraint("C10", ordered(BATCHING)),
    Constraint("C11", within(BATCHING, rank_sliced)),
    Constraint("C13", distinct("start_indices_batching_dims")),
    Constraint("C14", within("start_indices_batching_dims", rank_of_indices)),
    Constraint("C15", vectors_apart_from("start_indices_batching_dims")),
    Constraint("C16", as_many("start_indices_batching_dims", BATCHING)),
    Constraint("C17", batched_alike(BATCHING, "start_indices_batching_dims")),
    Constraint("C18", distinct("start_index_map", BATCHING)),
    Constraint("C19", within("start_index_map", rank_sliced)),
    Constraint("C20", lambda op: check_count("slice_sizes", len(op.slice_sizes), rank_sliced(op))),
    Constraint("C9", lambda op: _check_single(op, COLLAPSED)),
    Constraint("C12", lambda op: _check_single(op, BATCHING)),
    Constraint("C21", lambda op: check_sizes("a slice", op.slice_sizes.get_values(), shape_of(op.operand))),
    Constraint("C22", _check_result),
    Constraint("C23", lambda op: check_element("the result", element_of(op.result), element_of(op.operand))),
)


@irdl_op_definition
class DynamicGatherOp(IndexingOp):
    """As `gather`, with slice sizes that are an operand."""

    name = "stablehlo.dynamic_gather"

    operand = operand_def(NUMBERS)
    start_indices = operand_def(NUMBERS)
    slice_sizes = operand_def(NUMBERS)
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
        """The slice sizes; dynamic ones if they are not constant."""
        return constant_integers(self.slice_sizes) or [DYNAMIC_INDEX] * rank_sliced(self)

    def verify_(self) -> None:
        verify_constraints(self, OF_DYNAMIC)


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
    check_shape("the result", shape_of(op.result), interleaved(window, op.batch(), op.numbers.offset_dims))


# The specification has no batching dimensions here; their constraints are those of `gather`, without labels.
OF_DYNAMIC: tuple[Constraint[DynamicGatherOp], ...] = (
    Constraint("I2", indices_are_integers),
    Constraint("I3", lambda op: check_fixed_length("slice_sizes", op.slice_sizes)),
    Constraint("C1", adding_up("offset_dims", COLLAPSED, BATCHING)),
    Constraint("C2", vectors_lie_along_a_dimension),
    Constraint("C3", vectors_fill("start_index_map")),
    Constraint("C4", distinct_and_ordered("offset_dims")),
    Constraint("C5", within("offset_dims", rank_between("offset_dims"))),
    Constraint("C6", distinct(COLLAPSED, BATCHING)),
    Constraint("C6", ordered(COLLAPSED)),
    Constraint("C7", within(COLLAPSED, rank_sliced)),
    Constraint("batching", ordered(BATCHING)),
    Constraint("batching", within(BATCHING, rank_sliced)),
    Constraint("batching", distinct("start_indices_batching_dims")),
    Constraint("batching", within("start_indices_batching_dims", rank_of_indices)),
    Constraint("batching", vectors_apart_from("start_indices_batching_dims")),
    Constraint("batching", as_many("start_indices_batching_dims", BATCHING)),
    Constraint("batching", batched_alike(BATCHING, "start_indices_batching_dims")),
    Constraint("C9", distinct("start_index_map", BATCHING)),
    Constraint("C10", within("start_index_map", rank_sliced)),
    Constraint("C11", lambda op: check_dimension_tensor("slice_sizes", op.slice_sizes, rank_sliced(op))),
    Constraint("C8", lambda op: _check_single_size(op, COLLAPSED)),
    Constraint("batching", lambda op: _check_single_size(op, BATCHING)),
    Constraint("C12", _check_known_sizes),
    Constraint("C13", _check_dynamic_result),
    Constraint("C14", lambda op: check_element("the result", element_of(op.result), element_of(op.operand))),
)
