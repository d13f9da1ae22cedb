"""Device groups that exchange values, sender-receiver pairs, channels, and operations that return the executing
device's id.

    replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>; a group that is shorter than the others ends in -1
    source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>

Groups that are given by axes of a mesh are not checked.

    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.replica_id : tensor<ui32>
"""

from __future__ import annotations

import re

from xdsl.dialects.builtin import BoolAttr, IntegerType, Signedness, TensorType, UnregisteredAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import AnyDense, is_standard_dense
from ..constants.dense import to_numpy
from .checks import check_types
from .formats import ResultTypeOp

DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3
"""The values of the field `type` of a channel handle."""
PADDING = -1
"""The id with which shorter groups are padded to the length of the longest group."""
_FIELD = re.compile(r"\b(handle|type)\s*=\s*(-?\d+)")


def channel_field(handle: Attribute | None, name: str) -> int:
    """Return the field `handle` or `type` of a channel handle; 0 if there is no handle."""
    text = handle.value.data if isinstance(handle, UnregisteredAttr) else ""
    return int(dict(_FIELD.findall(text)).get(name, 0))


def check_channel_type(handle: Attribute, is_host_transfer: BoolAttr | None, is_sent: bool) -> None:
    """Check that the channel connects a device and the host for a host transfer, and devices otherwise."""
    expected = DEVICE_TO_DEVICE
    if is_host_transfer is not None and bool(is_host_transfer):
        expected = DEVICE_TO_HOST if is_sent else HOST_TO_DEVICE
    if (type_ := channel_field(handle, "type")) != expected:
        raise VerifyException(f"the channel has type {type_}, expected {expected}")


def check_channel(handle: Attribute | None, is_global: bool, least: int = 1) -> None:
    """Check that an operation with global device ids has a channel whose id is at least `least`."""
    if is_global and (number := channel_field(handle, "handle")) < least:
        raise VerifyException(f"the channel has id {number}, expected at least {least} for global device ids")


def rows_of(groups: Attribute | None) -> list[list[int]] | None:
    """Return the rows of a table of device ids; None if the attribute is not such a table."""
    if groups is None or not is_standard_dense(groups):
        return None
    return [[int(number) for number in row] for row in to_numpy(groups)] if _rank(groups) == 2 else None


def _rank(groups: AnyDense) -> int:
    return len(groups.get_shape())


def check_is_table(subject: str, groups: Attribute | None) -> None:
    """Check that a table of device ids has rank 2."""
    if groups is not None and is_standard_dense(groups) and _rank(groups) != 2:
        raise VerifyException(f"{subject} have rank {_rank(groups)}, expected 2")


def _members(groups: Attribute | None) -> list[int]:
    return [number for row in rows_of(groups) or () for number in row if number != PADDING]


def check_groups_distinct(groups: Attribute | None) -> None:
    check_distinct_numbers("replica_groups", _members(groups))


def check_distinct_numbers(subject: str, numbers: list[int]) -> None:
    repeated = next((number for index, number in enumerate(numbers) if number in set(numbers[:index])), None)
    if repeated is not None:
        raise VerifyException(f"{subject} contain device {repeated} more than once")


def check_groups_complete(groups: Attribute | None) -> None:
    """Check that the groups contain every id below the number of devices."""
    members = set(_members(groups))
    missing = next((number for number in range(len(members)) if number not in members), None)
    if missing is not None:
        raise VerifyException(f"replica_groups contain {len(members)} devices, but device {missing} is missing")


def check_groups_not_negative(groups: Attribute | None) -> None:
    if any(number < 0 for row in rows_of(groups) or () for number in row):
        raise VerifyException("replica_groups must not contain negative ids")


def check_groups_full(groups: Attribute | None) -> None:
    """Check that all groups have the same size, so that no group is padded with -1."""
    if any(number == PADDING for row in rows_of(groups) or () for number in row):
        raise VerifyException(
            "replica_groups contain -1, but this operation does not support groups of different sizes"
        )


def check_groups_given(groups: Attribute | None, is_global: bool) -> None:
    """Check that an operation with global device ids lists its groups."""
    if is_global and groups is not None and is_standard_dense(groups) and 0 in groups.get_shape():
        raise VerifyException("replica_groups are empty, but with global device ids they must contain all devices")


def check_pairs_have_two_columns(pairs: Attribute | None, any_rank_if_empty: bool = False) -> None:
    if pairs is None or not is_standard_dense(pairs):
        return
    shape = pairs.get_shape()
    if any_rank_if_empty and 0 in shape:
        return
    if len(shape) != 2 or shape[1] != 2:
        raise VerifyException(f"source_target_pairs have shape {list(shape)}, expected rank 2 with two columns")


def check_distinct_pairs(subject: str, pairs: Attribute | None, column: int) -> None:
    check_distinct_numbers(f"the {subject}", [row[column] for row in rows_of(pairs) or ()])


def check_pairs_not_negative(pairs: Attribute | None) -> None:
    if any(number < 0 for row in rows_of(pairs) or () for number in row):
        raise VerifyException("source_target_pairs must not contain negative ids")


NUMBER = TensorType(IntegerType(32, Signedness.UNSIGNED), [])


class DeviceNumberOp(ResultTypeOp):
    """Base class of operations that return an id of the executing device."""

    result = result_def(TensorType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_types("the result", self.result.type, NUMBER)


@irdl_op_definition
class PartitionIdOp(DeviceNumberOp):
    """Return the id of the executing partition."""

    name = "stablehlo.partition_id"


@irdl_op_definition
class ReplicaIdOp(DeviceNumberOp):
    """Return the id of the executing replica."""

    name = "stablehlo.replica_id"


DEVICES: list[type[Operation]] = [PartitionIdOp, ReplicaIdOp]
