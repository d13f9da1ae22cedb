"""Kernels of Shardy, which operate on global values that are not divided among the devices.

Examples:
    %1 = sdy.all_gather [{"x"}] %0 …       the same global value, of which each device holds a larger part
    %1 = sdy.all_reduce {"x"} %0 …         the same global value, unless %0 is unreduced along x: then it is the sum (or
                                           maximum, minimum) of the values on the devices along x
"""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects.sdy.axes import Axis, Mesh, axes_text
from ...dialects.sdy.collectives import ReducingOp
from ...dialects.sdy.sharding_lookup import mesh_of, sharding_of
from ...dialects.sdy.sharding_text import parse_sharding
from .arrays import Array, Kernel, on_one, row_by_row


def reshard(op: Operation) -> Kernel:
    """Make the kernel of an operation that only changes the sharding. The kernel returns a view if the operand is
    row-major, otherwise a copy."""
    return on_one(lambda operand: row_by_row(operand).view())


def reducing_collective(op: Operation) -> Kernel:
    """Make the kernel of a reducing collective. The kernel returns the operand.

    Raises:
        ValueError: The operand is not unreduced along a reduced axis. In this case, the devices along the axis have
            copies of the whole value, and the sum of the copies depends on the partitioner.
    """
    assert isinstance(op, ReducingOp), "the table maps only collectives that reduce"
    operand = sharding_of(op.tensor)
    mesh = mesh_of(op, parse_sharding(op.out_sharding.data).mesh)
    if mesh is None:
        raise ValueError("the mesh of its sharding is not defined in the module")
    unreduced = () if operand is None else operand.unreduced
    for axis in op.reduced_axes():
        if not any(_is_within(axis, other, mesh) for other in unreduced):
            raise ValueError(
                f"it reduces along {axis}, but its operand is unreduced along {axes_text(unreduced)} only; "
                "the interpreter does not support partially unreduced values"
            )
    return reshard(op)


def _is_within(part: Axis, axis: Axis, mesh: Mesh) -> bool:
    return part.name == axis.name and axis.pre_size <= part.pre_size and part.end(mesh) <= axis.end(mesh)


def sharding_group(op: Operation) -> Kernel:
    """Make the kernel of `sdy.sharding_group`. The operation has no results."""

    def run(operand: Array) -> tuple[Array, ...]:
        return ()

    return run
