"""The constraints on shardings and axis lists, which follow Shardy's `verifiers.cc`."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import DYNAMIC_INDEX, TupleType, UnrankedTensorType, UnregisteredAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_tensor
from .axes import Axes, Axis, Mesh, Sharding, can_merge
from .sharding_lookup import enclosing_manual_axes


def check_sharding(subject: str, sharding: Sharding, type_: Attribute, mesh: Mesh | None, op: Operation) -> None:
    """Raise `VerifyException` unless the sharding is valid for a value of this type."""
    if mesh is None:
        raise VerifyException(f"{subject} names the mesh {sharding.mesh}, but the module does not define it")
    if isinstance(type_, TupleType) and len(type_.types.data) == 1:
        type_ = type_.types.data[0]
    if isinstance(type_, UnregisteredAttr):
        # The type belongs to another dialect, and may have a shape.
        return
    if isinstance(type_, UnrankedTensorType):
        raise VerifyException(f"{subject}: only ranked tensors can have a sharding, found {type_}")
    if mesh.is_maximal() or not is_tensor(type_):
        return check_unsharded(subject, sharding)
    shape = type_.get_shape()
    if len(shape) != len(sharding.dimensions):
        raise VerifyException(f"{subject} has rank {len(sharding.dimensions)}, but the tensor has rank {len(shape)}")
    for index, dimension in enumerate(sharding.dimensions):
        if dimension.priority is not None and not dimension.is_open and not dimension.axes:
            raise VerifyException(f"{subject}: dimension {index} has a priority, but it is closed and has no axes")
    for label, axes in (("replicated", sharding.replicated), ("unreduced", sharding.unreduced)):
        check_order(f"{subject}: {label}", axes, mesh)
    lists = [*(dimension.axes for dimension in sharding.dimensions), sharding.replicated, sharding.unreduced]
    check_axis_lists(subject, lists, mesh)
    bound = enclosing_manual_axes(op)
    for axis in sharding.all_axes():
        if axis.name in bound:
            raise VerifyException(
                f'{subject} operates on axis "{axis.name}" which is already bound by a parent sdy.manual_computation op'
            )


def check_unsharded(subject: str, sharding: Sharding) -> None:
    """Raise `VerifyException` if the sharding has dimensions or axes.

    Shardings over a maximal mesh, and shardings of values without a shape, must have neither.
    """
    if sharding.dimensions or sharding.replicated or sharding.unreduced:
        raise VerifyException(f"{subject} must have rank 0 and no replicated or unreduced axes")


def check_order(subject: str, axes: Axes, mesh: Mesh) -> None:
    """Raise `VerifyException` unless the axes are in the order of the mesh."""
    of_mesh = [axis for axis in axes if axis.name in mesh.sizes]
    if of_mesh != sorted(of_mesh, key=mesh.sort_key):
        raise VerifyException(f"{subject} axes must be in the order of the mesh")


def check_axis_lists(subject: str, lists: Iterable[Axes], mesh: Mesh) -> None:
    """Raise `VerifyException` unless all listed axes belong to the mesh and no two of these axes overlap or can be
    merged."""
    seen: list[Axis] = []
    for axes in lists:
        for index, axis in enumerate(axes):
            _check_axis(subject, axis, mesh)
            if index and axes[index - 1].size and axis.size and can_merge(axes[index - 1], axis, mesh):
                raise VerifyException(f"{subject}: the adjacent sub-axes {axes[index - 1]} and {axis} must be merged")
            _check_distinct(subject, axis, seen, mesh)
            seen.append(axis)


def _check_distinct(subject: str, axis: Axis, seen: Iterable[Axis], mesh: Mesh) -> None:
    for other in seen:
        if axis == other:
            raise VerifyException(f"{subject}: axis {axis} occurs more than once")
        if axis.overlaps(other, mesh):
            raise VerifyException(f"{subject}: the axes {other} and {axis} overlap")


def _check_axis(subject: str, axis: Axis, mesh: Mesh) -> None:
    if axis.name not in mesh.sizes:
        raise VerifyException(f'{subject}: the mesh has no axis "{axis.name}"')
    if axis.size is None:
        return
    full = mesh.sizes[axis.name]
    if axis.pre_size < 1:
        raise VerifyException(f"{subject}: the pre-size of the sub-axis {axis} must be at least 1")
    if axis.size <= 1:
        raise VerifyException(f"{subject}: the size of the sub-axis {axis} must be greater than 1")
    if full % (axis.pre_size * axis.size):
        raise VerifyException(f"{subject}: the sub-axis {axis} does not divide the size of the full axis, {full}")
    if axis.size == full:
        raise VerifyException(f"{subject}: the sub-axis {axis} is as large as the full axis: omit its sizes")


def _units(axes: Axes, others: Axes, mesh: Mesh) -> set[tuple[str, int]]:
    """Split the axes at the boundaries of the axes in both lists, so that the two lists can be compared as sets."""
    units = set[tuple[str, int]]()
    for axis in axes:
        cuts = {
            cut for other in (*axes, *others) if other.name == axis.name for cut in (other.pre_size, other.end(mesh))
        }
        units.update((axis.name, cut) for cut in cuts if axis.pre_size <= cut < axis.end(mesh))
    return units


def check_unreduced(
    operand: Sharding, result: Sharding, mesh: Mesh, introduced: str | None, removed: str | None
) -> None:
    """Raise `VerifyException` if the operation adds or removes unreduced axes, and the arguments do not permit this.

    Args:
        operand: The sharding of the operand.
        result: The sharding of the result.
        mesh: The mesh of both shardings.
        introduced: The reduction of the unreduced axes that the operation may add; None if it may not add any.
        removed: The reduction of the unreduced axes that the operation may remove; None if it may not remove any.
    """
    before = _units(operand.unreduced, result.unreduced, mesh)
    after = _units(result.unreduced, operand.unreduced, mesh)
    if added := after - before:
        if introduced is None:
            raise VerifyException(f"the result is unreduced along axis '{min(added)[0]}', but the operand is not")
        if result.reduction != introduced:
            raise VerifyException(
                f"the added unreduced axes have the reduction '{result.reduction}', expected '{introduced}'"
            )
    if dropped := before - after:
        if removed is None:
            raise VerifyException(
                f"the operand is unreduced along axis '{min(dropped)[0]}', but the result is not: only a reduction "
                "along this axis can change that"
            )
        if operand.reduction != removed:
            raise VerifyException(
                f"the removed unreduced axes have the reduction '{operand.reduction}', expected '{removed}'"
            )
    if before & after and operand.reduction != result.reduction:
        raise VerifyException(
            "the operand and the result share unreduced axes, but the reduction changes from "
            f"'{operand.reduction}' to '{result.reduction}'"
        )


def check_divisible(subject: str, extent: int, size: int) -> None:
    if extent != DYNAMIC_INDEX and extent % size:
        raise VerifyException(f"{subject} dimension size {extent} is not divisible by the manual axes size {size}")
