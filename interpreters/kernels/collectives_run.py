"""Kernels of collectives for a single process, and for several simulated devices according to StableHLO's
specification."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.ir import Operation

from ...dialects.stablehlo.collectives import (
    AllGatherOp,
    AllToAllOp,
    CollectiveOp,
    CollectivePermuteOp,
    ReduceScatterOp,
)
from ...dialects.stablehlo.process_groups import PADDING, channel_field, rows_of
from ...support.operations import root_of
from ...support.type_guards import is_integer_attribute
from .arrays import Array, Combine, Kernel, dtype_at, on_one, shape_at
from .conversion import convert
from .properties import table

FIRST = 0
# The attributes of a module that give the number of processes.
COUNTS = ("mhlo.num_replicas", "mhlo.num_partitions")


def collective(op: Operation) -> Kernel:
    """Make the kernel of a collective with this process as the only participant. The kernel returns the operands.

    Raises:
        ValueError: Other processes take part, or the results and the operands differ in shape.
    """
    _check_alone(op, "replica_groups")
    if [shape_at(result) for result in op.results] != [shape_at(operand) for operand in op.operands]:
        raise ValueError(
            "its results and operands differ in shape, which requires several processes; the interpreter simulates "
            "only one"
        )
    dtypes = [dtype_at(result) for result in op.results]

    def run(*operands: Array) -> tuple[Array, ...]:
        # Captures of a region come after the operands.
        return tuple(convert(operand, dtype) for operand, dtype in zip(operands, dtypes, strict=False))

    return run


def single_process_permute(op: Operation) -> Kernel:
    """Make the kernel of `collective_permute` for a single process. The kernel returns the operand if the process sends
    to itself, and zeros otherwise."""
    receives = bool(_check_alone(op, "source_target_pairs"))
    return on_one(lambda operand: operand.copy() if receives else np.zeros(operand.shape, operand.dtype))


def own_id(op: Operation) -> Kernel:
    _check_module(op)
    return lambda: (np.array(FIRST, np.uint32),)


def _check_alone(op: Operation, name: str) -> list[list[int]]:
    _check_module(op)
    rows = table(op, name)
    if any(process > FIRST for row in rows for process in row):
        raise ValueError(f"its '{name}' contains other processes, but the interpreter supports only process 0")
    return rows


def _check_module(op: Operation) -> None:
    """Raise `ValueError` if the module requires more than one replica or partition."""
    module = root_of(op)
    for name in COUNTS:
        count = module.attributes.get(name)
        if count is not None and is_integer_attribute(count) and count.value.data > 1:
            raise ValueError(
                f"the module has {name} = {count.value.data}, but the interpreter supports only one process"
            )


Group: TypeAlias = tuple[int, ...]
"""The ids of the devices of a group, in order."""
Values: TypeAlias = tuple[Array, ...]


class SimulatedDevice(ABC):
    """One of `replicas * partitions` simulated devices."""

    def __init__(self, number: int, replicas: int, partitions: int):
        self.number, self.replicas, self.partitions = number, replicas, partitions

    @property
    def replica(self) -> int:
        return self.number // self.partitions

    @property
    def partition(self) -> int:
        return self.number % self.partitions

    @abstractmethod
    def exchange(self, group: Group, channel: int, values: Values) -> list[Values]:
        """Contribute values to a collective, and return the values of all devices in the order of the group."""

    def group_of(self, op: CollectiveOp, across_partitions: bool) -> Group | None:
        """Return the group of a collective to which this device belongs, or None if it belongs to no group.

        `across_partitions`: whether the groups of an operation with a channel consist of partitions instead of
        replicas.
        """
        rows = rows_of(op.replica_groups)
        channel = channel_field(op.channel_handle, "handle")
        if rows is None:
            raise ValueError("its replica_groups are not a constant matrix of device ids")
        if op.is_global:
            groups = rows or [list(range(self.replicas * self.partitions))]
        elif channel > 0 and across_partitions:
            rows = rows or [list(range(self.partitions))]
            groups = [[replica * self.partitions + p for p in row] for replica in range(self.replicas) for row in rows]
        else:
            rows = [[replica for replica in row if replica != PADDING] for row in rows] or [list(range(self.replicas))]
            groups = self._groups_of_replicas(rows, channel > 0)
        members = [tuple(number for number in group if number != PADDING) for group in groups]
        return next((group for group in members if self.number in group), None)

    def _groups_of_replicas(self, rows: Sequence[Sequence[int]], joins_partitions: bool) -> list[list[int]]:
        """Convert groups of replicas to groups of devices: within each partition or, if `joins_partitions`, across all
        partitions."""
        by_partition = [
            [[replica * self.partitions + partition for replica in row] for row in rows]
            for partition in range(self.partitions)
        ]
        if not joins_partitions:
            return [group for groups in by_partition for group in groups]
        return [[number for groups in by_partition for number in groups[index]] for index in range(len(rows))]


def _exchange(
    op: CollectiveOp, device: SimulatedDevice, values: Values, across_partitions: bool = False
) -> list[Values] | None:
    """Return the operands on all devices of the group to which a device belongs, or None if it belongs to no group."""
    group = device.group_of(op, across_partitions)
    return None if group is None else device.exchange(group, channel_field(op.channel_handle, "handle"), values)


def _zeros(op: Operation) -> Values:
    return tuple(np.zeros(shape_at(result), dtype_at(result)) for result in op.results)


def all_gather(op: AllGatherOp, device: SimulatedDevice) -> Kernel:
    along = op.all_gather_dim.value.data

    def run(*values: Array) -> Values:
        exchanged = _exchange(op, device, values)
        return (
            _zeros(op)
            if exchanged is None
            else tuple(np.concatenate(parts, along) for parts in zip(*exchanged, strict=True))
        )

    return run


def all_to_all(op: AllToAllOp, device: SimulatedDevice) -> Kernel:
    split, concat, count = (part.value.data for part in (op.split_dimension, op.concat_dimension, op.split_count))

    def run(*values: Array) -> Values:
        group = device.group_of(op, across_partitions=True)
        if group is None:
            return _zeros(op)
        exchanged = device.exchange(group, channel_field(op.channel_handle, "handle"), values)
        own = group.index(device.number)
        parts = ([np.split(whole, count, split)[own] for whole in wholes] for wholes in zip(*exchanged, strict=True))
        return tuple(np.concatenate(slices, concat) for slices in parts)

    return run


def collective_broadcast(op: CollectiveOp, device: SimulatedDevice) -> Kernel:
    def run(*values: Array) -> Values:
        exchanged = _exchange(op, device, values, across_partitions=True)
        if exchanged is None:
            return _zeros(op)
        roots = values[-1] if op.has_dynamic_root else [0] * len(values)
        return tuple(exchanged[int(root)][index].copy() for index, root in enumerate(roots))

    return run


def collective_permute(op: CollectivePermuteOp, device: SimulatedDevice) -> Kernel:
    """Make the kernel of `collective_permute`. A device to which no device sends receives zeros."""
    pairs = rows_of(op.source_target_pairs) or []
    channel = channel_field(op.channel_handle, "handle")
    numbers = range(device.partitions if channel > 0 else device.replicas)
    own = device.partition if channel > 0 else device.replica
    group = tuple(
        device.replica * device.partitions + number if channel > 0 else number * device.partitions + device.partition
        for number in numbers
    )
    source = next((source for source, target in pairs if target == own), None)

    def run(value: Array) -> Values:
        exchanged = device.exchange(group, channel, (value,))
        return _zeros(op) if source is None else (exchanged[source][0].copy(),)

    return run


def _combine(op: CollectiveOp, combine: Combine, exchanged: Sequence[Array], captured: Values) -> Array:
    """Combine arrays from all devices elementwise, in the order of the group, and return the result."""
    dtype = dtype_at(op.regions[0].block.args[0])
    result = convert(exchanged[0], dtype).reshape(-1)
    for other in exchanged[1:]:
        (result,) = combine(result, convert(other, dtype).reshape(-1), *captured)
    return result.reshape(exchanged[0].shape)


def all_reduce(op: CollectiveOp, device: SimulatedDevice, combine: Combine) -> Kernel:
    count = len(op.operands)

    def run(*values: Array) -> Values:
        exchanged = _exchange(op, device, values[:count])
        if exchanged is None:
            return _zeros(op)
        return tuple(_combine(op, combine, parts, values[count:]) for parts in zip(*exchanged, strict=True))

    return run


def reduce_scatter(op: ReduceScatterOp, device: SimulatedDevice, combine: Combine) -> Kernel:
    along = op.scatter_dimension.value.data

    def run(value: Array, *captured: Array) -> Values:
        group = device.group_of(op, across_partitions=False)
        if group is None:
            return _zeros(op)
        exchanged = device.exchange(group, channel_field(op.channel_handle, "handle"), (value,))
        whole = _combine(op, combine, [part for (part,) in exchanged], captured)
        return (np.split(whole, len(group), along)[group.index(device.number)].copy(),)

    return run


def collective_reduce(op: CollectiveOp, device: SimulatedDevice, combine: Combine) -> Kernel:
    """Make the kernel of `collective_reduce`. The root of the group receives the result, and the other devices receive
    zeros."""
    count = len(op.operands)

    def run(*values: Array) -> Values:
        group = device.group_of(op, across_partitions=False)
        if group is None:
            return _zeros(op)
        exchanged = device.exchange(group, channel_field(op.channel_handle, "handle"), values[:count])
        data = len(op.data)
        roots = [int(root) for root in values[count - 1]] if op.has_dynamic_root else [0] * data
        own, nothing = group.index(device.number), _zeros(op)
        parts = [[part[index] for part in exchanged] for index in range(data)]
        return tuple(
            _combine(op, combine, parts[index], values[count:]) if root == own else nothing[index]
            for index, root in enumerate(roots)
        )

    return run


def partition_id(op: Operation, device: SimulatedDevice) -> Kernel:
    return lambda: (np.array(device.partition, np.uint32),)


def replica_id(op: Operation, device: SimulatedDevice) -> Kernel:
    return lambda: (np.array(device.replica, np.uint32),)


ON_DEVICES: dict[str, Callable[..., Kernel]] = {
    "stablehlo.all_gather": all_gather,
    "stablehlo.all_to_all": all_to_all,
    "stablehlo.collective_broadcast": collective_broadcast,
    "stablehlo.collective_permute": collective_permute,
    "stablehlo.partition_id": partition_id,
    "stablehlo.replica_id": replica_id,
}
REDUCING_ON_DEVICES: dict[str, Callable[..., Kernel]] = {
    "stablehlo.all_reduce": all_reduce,
    "stablehlo.collective_reduce": collective_reduce,
    "stablehlo.reduce_scatter": reduce_scatter,
}
