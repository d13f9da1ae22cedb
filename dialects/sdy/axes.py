"""Mesh axes as data, and the lists of axes that collectives produce.

"x"           the whole axis
"x":(2)4      the sub-axis of size 4 that follows a sub-axis of size 2
[{"x", "y":(1)2}, {?}]                dimension 0 is divided by x, then by the first half of y; dimension 1 is open
unreduced=max{"x"}                    the value is the maximum over the devices along x
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.utils.exceptions import VerifyException


@dataclass(frozen=True)
class Axis:
    """A mesh axis. If `size` is None, this is the full axis. Otherwise it is the sub-axis `"x":(pre_size)size`."""

    name: str
    pre_size: int = 1
    size: int | None = None

    def __str__(self) -> str:
        return f'"{self.name}"' if self.size is None else f'"{self.name}":({self.pre_size}){self.size}'

    def length(self, mesh: Mesh) -> int:
        return mesh.sizes[self.name] if self.size is None else self.size

    def end(self, mesh: Mesh) -> int:
        """Return the product of the mesh axis's factors up to the end of this sub-axis."""
        return self.pre_size * self.length(mesh)

    def overlaps(self, other: Axis, mesh: Mesh) -> bool:
        return self.name == other.name and self.pre_size < other.end(mesh) and other.pre_size < self.end(mesh)


Axes: TypeAlias = tuple[Axis, ...]


@dataclass(frozen=True)
class Mesh:
    """A mesh: axes with their sizes, in order, and the device ids if they are not in ascending order."""

    sizes: dict[str, int]
    devices: tuple[int, ...] = ()

    def is_maximal(self) -> bool:
        """Return whether the mesh is maximal, that is, whether it consists of one device that is given by its id."""
        return not self.sizes and len(self.devices) == 1

    def sort_key(self, axis: Axis) -> tuple[int, int, int]:
        """Return the key by which axes are sorted in mesh order."""
        return list(self.sizes).index(axis.name), axis.pre_size, axis.length(self)


@dataclass(frozen=True)
class Dimension:
    """The axes that divide a dimension, in major-to-minor order."""

    axes: Axes = ()
    is_open: bool = False
    priority: int | None = None


@dataclass(frozen=True)
class Sharding:
    """A parsed `#sdy.sharding`. `mesh` is a name such as `@mesh`, or an inline mesh, `mesh<…>`."""

    mesh: str
    dimensions: tuple[Dimension, ...]
    replicated: Axes = ()
    unreduced: Axes = ()
    reduction: str = "sum"

    def all_axes(self) -> Axes:
        divided = [axis for dimension in self.dimensions for axis in dimension.axes]
        return (*divided, *self.replicated, *self.unreduced)


def can_merge(first: Axis, second: Axis, mesh: Mesh) -> bool:
    """Return whether the second sub-axis continues the first one, so that both together are one sub-axis."""
    return first.name == second.name and first.end(mesh) == second.pre_size


def merge_axes(axes: Iterable[Axis], mesh: Mesh) -> Axes:
    """Return the axes, with consecutive sub-axes of the same axis merged."""
    result: list[Axis] = []
    for axis in axes:
        if result and can_merge(result[-1], axis, mesh):
            before, size = result[-1].pre_size, result[-1].length(mesh) * axis.length(mesh)
            result[-1] = Axis(axis.name) if size == mesh.sizes[axis.name] else Axis(axis.name, before, size)
        else:
            result.append(axis)
    return tuple(result)


def sort_axes(axes: Iterable[Axis], mesh: Mesh) -> Axes:
    """Return the axes in the order of the mesh, with consecutive sub-axes of the same axis merged."""
    return merge_axes(sorted(axes, key=mesh.sort_key), mesh)


def gather_axes(subject: str, axes: Axes, removed: Axes, mesh: Mesh) -> Axes:
    """Return the axes of a dimension without the trailing axes `removed`.

    Raises `VerifyException` if the axes do not end with `removed`.
    """
    remaining = list(axes)
    for axis in reversed(removed):
        if not remaining or remaining[-1].name != axis.name or not _is_end_of(axis, remaining[-1], mesh):
            raise VerifyException(f"{subject} axis {axis} is not the last of the operand's axes {axes_text(axes)}")
        last = remaining.pop()
        if axis.pre_size > last.pre_size:
            remaining.append(Axis(axis.name, last.pre_size, axis.pre_size // last.pre_size))
    return tuple(remaining)


def _is_end_of(part: Axis, whole: Axis, mesh: Mesh) -> bool:
    return part.pre_size >= whole.pre_size and part.pre_size % whole.pre_size == 0 and part.end(mesh) == whole.end(mesh)


def axes_text(axes: Axes) -> str:
    return "{" + ", ".join(map(str, axes)) + "}"
