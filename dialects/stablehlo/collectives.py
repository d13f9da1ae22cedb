"""Collectives: operations that groups of devices run together. StableHLO prints all of them in generic form.

`process_groups.py` defines device groups and channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, UnitAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
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
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .checks import (
    Constraint,
    check_count,
    check_element,
    check_shape,
    check_types,
    check_within,
    element_of,
    shape_of,
    verify_constraints,
)
from .control import check_all
from .formats import I64_ATTR
from .process_groups import (
    check_channel,
    check_distinct_pairs,
    check_groups_complete,
    check_groups_distinct,
    check_groups_full,
    check_groups_given,
    check_groups_not_negative,
    check_is_table,
    check_pairs_have_two_columns,
    check_pairs_not_negative,
    rows_of,
)
from .reduction import check_promotable, check_scalars, combined_types
from .tensors import numbers


class CollectiveOp(IRDLOperation):
    """Base class of operations that exchange values within each group of devices."""

    replica_groups = prop_def()
    channel_handle = opt_prop_def()

    @property
    def is_global(self) -> bool:
        """Whether the groups contain global device ids instead of replica ids."""
        return "use_global_device_ids" in self.properties

    @property
    def has_dynamic_root(self) -> bool:
        """Whether the last operand selects the device that sends, or the device that receives the result."""
        return "has_dynamic_root" in self.properties

    @property
    def data(self) -> Sequence[SSAValue]:
        """The operands that are exchanged."""
        return self.operands[:-1] if self.has_dynamic_root else self.operands

    @property
    def group_size(self) -> int | None:
        """The number of devices in a group; None if the groups are not listed."""
        rows = rows_of(self.replica_groups)
        return len(rows[0]) if rows else None


@irdl_op_definition
class AllGatherOp(CollectiveOp):
    """Concatenate the operands of all devices of a group."""

    name = "stablehlo.all_gather"

    inputs = var_operand_def(numbers("I1"))
    all_gather_dim = prop_def(I64_ATTR)
    replica_groups = prop_def()
    channel_handle = opt_prop_def()
    use_global_device_ids = opt_prop_def(UnitAttr)
    result = var_result_def(TensorType)

    def verify_(self) -> None:
        verify_constraints(self, ALL_GATHER_CONSTRAINTS)


@irdl_op_definition
class AllReduceOp(CollectiveOp):
    """Combine the operands of all devices of a group with the region."""

    name = "stablehlo.all_reduce"

    inputs = var_operand_def(numbers("I1"))
    replica_groups = prop_def()
    channel_handle = opt_prop_def()
    use_global_device_ids = opt_prop_def(UnitAttr)
    computation = region_def("single_block")
    result = var_result_def(TensorType)

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        verify_constraints(self, ALL_REDUCE_CONSTRAINTS)


@irdl_op_definition
class ReduceScatterOp(CollectiveOp):
    """Combine the operands of all devices of a group, using the region. Each device receives a slice of the result."""

    name = "stablehlo.reduce_scatter"

    operand = operand_def(numbers("I1"))
    scatter_dimension = prop_def(I64_ATTR)
    replica_groups = prop_def()
    channel_handle = opt_prop_def()
    use_global_device_ids = opt_prop_def(UnitAttr)
    computation = region_def("single_block")
    result = result_def(TensorType)

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        verify_constraints(self, REDUCE_SCATTER_CONSTRAINTS)


@irdl_op_definition
class AllToAllOp(CollectiveOp):
    """Split the operands of all devices of a group. Each device receives one slice from every device and concatenates
    the slices."""

    name = "stablehlo.all_to_all"

    inputs = var_operand_def(numbers("I1"))
    split_dimension = prop_def(I64_ATTR)
    concat_dimension = prop_def(I64_ATTR)
    split_count = prop_def(I64_ATTR)
    replica_groups = prop_def()
    channel_handle = opt_prop_def()
    result = var_result_def(TensorType)

    def verify_(self) -> None:
        verify_constraints(self, ALL_TO_ALL_CONSTRAINTS)


@irdl_op_definition
class CollectiveBroadcastOp(CollectiveOp):
    """Return the operands of one device to all devices of its group."""

    name = "stablehlo.collective_broadcast"

    inputs = var_operand_def(numbers("I1"))
    replica_groups = prop_def()
    channel_handle = opt_prop_def()
    has_dynamic_root_ = opt_prop_def(UnitAttr, prop_name="has_dynamic_root")
    result = var_result_def(TensorType)

    def verify_(self) -> None:
        verify_constraints(self, BROADCAST_CONSTRAINTS)


@irdl_op_definition
class CollectiveReduceOp(CollectiveOp):
    """Combine the operands of all devices of a group, using the region. One of the devices receives the result."""

    name = "stablehlo.collective_reduce"

    inputs = var_operand_def(numbers("I1"))
    replica_groups = prop_def()
    channel_handle = opt_prop_def()
    use_global_device_ids = opt_prop_def(UnitAttr)
    has_dynamic_root_ = opt_prop_def(UnitAttr, prop_name="has_dynamic_root")
    computation = region_def("single_block")
    result = var_result_def(TensorType)

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        verify_constraints(self, REDUCE_CONSTRAINTS)


@irdl_op_definition
class CollectivePermuteOp(IRDLOperation):
    """Return the operand of the device that sends to the executing device; zeros if no device sends to it."""

    name = "stablehlo.collective_permute"

    operand = operand_def(numbers("I1"))
    source_target_pairs = prop_def()
    channel_handle = opt_prop_def()
    result = result_def(TensorType)

    def verify_(self) -> None:
        verify_constraints(self, PERMUTE_CONSTRAINTS)


def _group_constraints(
    kinds: str, distinct: str, complete: str, channel: str, is_full: bool
) -> list[Constraint[CollectiveOp]]:
    """Return the constraints on groups and channels.

    Args:
        kinds, distinct, complete, channel: The labels of the constraints.
        is_full: Whether all groups must have the same size.
    """
    constraints = [
        Constraint[CollectiveOp](kinds, lambda op: check_is_table("replica_groups", op.replica_groups)),
        Constraint[CollectiveOp](complete, lambda op: check_groups_given(op.replica_groups, op.is_global)),
        Constraint[CollectiveOp](distinct, lambda op: check_groups_distinct(op.replica_groups)),
        Constraint[CollectiveOp](complete, lambda op: check_groups_complete(op.replica_groups)),
        Constraint[CollectiveOp](channel, lambda op: check_channel(op.channel_handle, op.is_global)),
    ]
    if is_full:
        constraints.insert(1, Constraint[CollectiveOp](complete, lambda op: check_groups_full(op.replica_groups)))
    return constraints


def _dimension(op: CollectiveOp, name: str) -> int:
    dimension = op.properties[name]
    assert I64_ATTR.verifies(dimension), "the definition of the operation requires an integer"
    return dimension.value.data


def _requires_within(name: str) -> Callable[[CollectiveOp], None]:
    def check(op: CollectiveOp) -> None:
        for value in op.operands:
            check_within(name, [_dimension(op, name)], len(shape_of(value)))

    return check


def _check_same_counts(op: CollectiveOp) -> None:
    check_count("results", len(op.results), len(op.data))


def _check_elements(op: CollectiveOp) -> None:
    for result, value in zip(op.results, op.data, strict=True):
        check_element("a result", element_of(result), element_of(value))


def _check_gathered(op: AllGatherOp) -> None:
    dimension = op.all_gather_dim.value.data
    for result, value in zip(op.results, op.data, strict=True):
        whole, part = list(shape_of(result)), list(shape_of(value))
        if part[dimension] == 0:
            raise VerifyException("an operand has no elements along all_gather_dim")
        check_count("dimensions of a result", len(whole), len(part))
        check_shape("a result", whole, [*part[:dimension], whole[dimension], *part[dimension + 1 :]])
        _check_multiple("a result", whole[dimension], part[dimension], op)


def _check_multiple(subject: str, whole: int, part: int, op: CollectiveOp) -> None:
    """Check that `whole` is a multiple of `part`. The factor is not checked, because the group size may be unknown."""
    if DYNAMIC_INDEX not in (whole, part) and (part == 0 or whole % part):
        raise VerifyException(f"{subject} has an extent of {whole}, expected a multiple of {part}")


def _check_computation(op: CollectiveOp) -> None:
    (type_,) = combined_types(op.regions[0].block, 1)
    check_scalars([type_])
    for value in op.data:
        check_promotable("an operand", element_of(value), type_.element_type)


def _check_combined_elements(op: CollectiveOp) -> None:
    (type_,) = combined_types(op.regions[0].block, 1)
    for result in op.results:
        check_element("a result", element_of(result), type_.element_type)


def _check_shapes(op: CollectiveOp) -> None:
    _check_same_counts(op)
    for result, value in zip(op.results, op.data, strict=True):
        check_shape("a result", shape_of(result), shape_of(value))


def _check_divides(op: ReduceScatterOp) -> None:
    extent, size = shape_of(op.operand)[op.scatter_dimension.value.data], op.group_size
    if extent == 0:
        raise VerifyException("the operand has no elements along scatter_dimension")
    if size and extent != DYNAMIC_INDEX and extent % size:
        raise VerifyException(f"an extent of {extent} cannot be divided evenly among {size} devices")


def _check_scattered(op: ReduceScatterOp) -> None:
    dimension = op.scatter_dimension.value.data
    whole = list(shape_of(op.operand))
    part = list(shape_of(op.result))
    check_count("dimensions of the result", len(part), len(whole))
    check_shape("the result", part, [*whole[:dimension], part[dimension], *whole[dimension + 1 :]])
    _check_multiple("the operand", whole[dimension], part[dimension], op)


def _check_split(op: AllToAllOp) -> None:
    count = op.split_count.value.data
    for value in op.inputs:
        extent = shape_of(value)[op.split_dimension.value.data]
        if extent != DYNAMIC_INDEX and extent % count:
            raise VerifyException(f"an extent of {extent} cannot be divided evenly into {count} slices")


def _check_split_count(op: AllToAllOp) -> None:
    if op.split_count.value.data < 1:
        raise VerifyException(f"split_count is {op.split_count.value.data}, expected a positive number")


def _check_group_size(op: AllToAllOp) -> None:
    rows = rows_of(op.replica_groups)
    count = op.split_count.value.data
    if rows == []:
        raise VerifyException(f"replica_groups are empty, expected groups of {count} devices (split_count)")
    if rows and len(rows[0]) != count:
        raise VerifyException(f"the number of devices in a group is {len(rows[0])}, expected {count} (split_count)")


def _check_moved(op: AllToAllOp) -> None:
    _check_same_counts(op)
    split, concat, count = (value.value.data for value in (op.split_dimension, op.concat_dimension, op.split_count))
    for result, value in zip(op.results, op.inputs, strict=True):
        expected = list(shape_of(value))
        if expected[split] != DYNAMIC_INDEX:
            expected[split] //= count
        if expected[concat] != DYNAMIC_INDEX:
            expected[concat] *= count
        check_shape("a result", shape_of(result), expected)


def _check_data(op: CollectiveOp) -> None:
    if not op.has_dynamic_root and not op.operands:
        raise VerifyException("there are no operands, expected at least one")


def _check_root(op: CollectiveOp) -> None:
    """Check that the last operand, if it selects root devices, contains one device id for each operand before it."""
    if not op.has_dynamic_root:
        return
    if len(op.operands) < 2:
        raise VerifyException(
            f"there are {len(op.operands)} operands, expected at least one data operand and the ids of the root devices"
        )
    check_types("the last operand", op.operands[-1].type, TensorType(i32, [len(op.operands) - 1]))


def _checks_pairs(check: Callable[[Attribute | None], None]) -> Callable[[CollectivePermuteOp], None]:
    return lambda op: check(op.source_target_pairs)


ALL_GATHER_CONSTRAINTS: tuple[Constraint[AllGatherOp], ...] = (
    Constraint("C1", _requires_within("all_gather_dim")),
    *_group_constraints("I3", "C2", "C4", "C5", is_full=True),
    Constraint("C6", _check_same_counts),
    Constraint("C6", _check_elements),
    Constraint("C6", _check_gathered),
)
ALL_REDUCE_CONSTRAINTS: tuple[Constraint[AllReduceOp], ...] = (
    *_group_constraints("I2", "C1", "C3", "C4", is_full=False),
    Constraint("C5", _check_computation),
    Constraint("C6", _check_shapes),
    Constraint("C7", _check_combined_elements),
)
REDUCE_SCATTER_CONSTRAINTS: tuple[Constraint[ReduceScatterOp], ...] = (
    *_group_constraints("I3", "C3", "C5", "C6", is_full=True),
    Constraint("C7", _check_computation),
    Constraint("C2", _requires_within("scatter_dimension")),
    Constraint("C1", _check_divides),
    Constraint("C8", _check_scattered),
    Constraint("C9", _check_combined_elements),
)
ALL_TO_ALL_CONSTRAINTS: tuple[Constraint[AllToAllOp], ...] = (
    Constraint("C4", _check_split_count),
    Constraint("I5", lambda op: check_is_table("replica_groups", op.replica_groups)),
    Constraint("C7", lambda op: check_groups_full(op.replica_groups)),
    Constraint("C5", lambda op: check_groups_distinct(op.replica_groups)),
    Constraint("C7", lambda op: check_groups_complete(op.replica_groups)),
    Constraint("C8", _check_group_size),
    Constraint("C1", _requires_within("split_dimension")),
    Constraint("C3", _requires_within("concat_dimension")),
    Constraint("C2", _check_split),
    Constraint("C9", _check_moved),
    Constraint("C9", _check_elements),
)
BROADCAST_CONSTRAINTS: tuple[Constraint[CollectiveBroadcastOp], ...] = (
    Constraint("I2", lambda op: check_is_table("replica_groups", op.replica_groups)),
    Constraint("C2", lambda op: check_groups_not_negative(op.replica_groups)),
    Constraint("C1", lambda op: check_groups_distinct(op.replica_groups)),
    Constraint("C3", _check_data),
    Constraint("C4", _check_root),
    Constraint("C5", _check_same_counts),
    Constraint("C3", lambda op: check_all("the results", op.result_types, [value.type for value in op.data])),
)
REDUCE_CONSTRAINTS: tuple[Constraint[CollectiveReduceOp], ...] = (
    *_group_constraints("I2", "C1", "C2", "I3", is_full=False),
    Constraint("C3", _check_data),
    Constraint("C3", _check_root),
    Constraint("C4", _check_computation),
    Constraint("C3", _check_shapes),
    Constraint("C3", _check_combined_elements),
)
PERMUTE_CONSTRAINTS: tuple[Constraint[CollectivePermuteOp], ...] = (
    Constraint("C1", _checks_pairs(check_pairs_have_two_columns)),
    Constraint("C4", _checks_pairs(check_pairs_not_negative)),
    Constraint("C2", _checks_pairs(lambda pairs: check_distinct_pairs("sources", pairs, 0))),
    Constraint("C3", _checks_pairs(lambda pairs: check_distinct_pairs("targets", pairs, 1))),
    Constraint("C5", lambda op: check_types("the result", op.result.type, op.operand.type)),
)

COLLECTIVES: list[type[Operation]] = [
    AllGatherOp,
    AllReduceOp,
    ReduceScatterOp,
    AllToAllOp,
    CollectiveBroadcastOp,
    CollectiveReduceOp,
    CollectivePermuteOp,
]
