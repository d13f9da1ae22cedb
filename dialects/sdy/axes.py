"""Mesh axes as data: parsed shardings, Shardy's constraints on them, and the shardings that collectives produce.

    "x"           the whole axis
    "x":(2)4      the sub-axis of size 4 that follows a sub-axis of size 2
    [{"x", "y":(1)2}, {?}]                dimension 0 is divided by x, then by the first half of y; dimension 1 is open
    unreduced=max{"x"}                    the value is the maximum over the devices along x

The constraints follow Shardy's `verifiers.cc`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    ModuleOp,
    TupleType,
    UnrankedTensorType,
    UnregisteredAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.parser import AttrParser
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from ...support.type_guards import is_tensor
from .shardings import ManualAxesAttr, MeshAttr, ShardingAttr, ShardingPerValueAttr

SHARDING = "sdy.sharding"
COMPUTATION_NAMES = frozenset({"sdy.manual_computation", "sdy.named_computation"})


@dataclass(frozen=True)
class Axis:
    """A full mesh axis if `size` is None, otherwise the sub-axis `"x":(pre_size)size`."""

    name: str
    pre_size: int = 1
    size: int | None = None

    def __str__(self) -> str:
        return f'"{self.name}"' if self.size is None else f'"{self.name}":({self.pre_size}){self.size}'

    def length(self, mesh: Mesh) -> int:
        return mesh.sizes[self.name] if self.size is None else self.size

    def end(self, mesh: Mesh) -> int:
        """Return the product of all factors of the mesh axis up to the end of this sub-axis."""
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
        """Return whether the mesh is maximal: it consists of one device, given by its id."""
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


_NAME = r'"(?:[^"\\]|\\.)*"'
_AXIS = re.compile(rf"({_NAME})(?::\((\d+)\)(\d+))?")
_UNGROUPED_AXIS = rf"{_NAME}(?::\(\d+\)\d+)?"
_LIST = rf"(?:{_UNGROUPED_AXIS}(?:,{_UNGROUPED_AXIS})*)?"
_DIMENSION = re.compile(rf"\{{({_LIST}),?(\?)?\}}(?:p(0|[1-9]\d*))?")
_SHARDING = re.compile(
    rf"(@[\w.$-]+|@{_NAME}|mesh<[^<>]*>),\[((?:{_DIMENSION.pattern},?)*)\]"
    rf"((?:,(?:replicated|unreduced)=(?:sum|max|min)?\{{{_LIST}\}})*)"
)
_GROUP = re.compile(rf",(replicated|unreduced)=(sum|max|min)?\{{({_LIST})\}}")
_SPACE = re.compile(rf"({_NAME})|\s+")
_MESH = re.compile(rf"\[((?:{_NAME}=-?\d+(?:,(?=\"))?)*)\](?:,device_ids=\[(-?\d+(?:,-?\d+)*)\])?")
_SIZE = re.compile(rf"({_NAME})=(-?\d+)")


def _compact(text: str) -> str:
    """Return the text without white space outside strings."""
    return _SPACE.sub(lambda match: match[1] or "", text)


def parse_axes(text: str) -> Axes:
    """Return the axes of a string such as `"x","y":(1)2`."""
    return tuple(
        Axis(name[1:-1], int(before or 1), int(size) if size else None) for name, before, size in _AXIS.findall(text)
    )


def parse_axis(parser: AttrParser) -> Axis:
    """Parse `"x"` or `"x":(2)4`"""
    name = parser.parse_str_literal()
    if parser.parse_optional_punctuation(":") is None:
        return Axis(name)
    parser.parse_punctuation("(")
    before = parser.parse_integer(allow_boolean=False, allow_negative=False)
    parser.parse_punctuation(")")
    return Axis(name, before, parser.parse_integer(allow_boolean=False, allow_negative=False))


def parse_axis_list(parser: AttrParser) -> Axes:
    """Parse `{"x", "y"}`"""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: parse_axis(parser)))


def parse_sharding(text: str) -> Sharding:
    """Parse the text of a sharding between `<` and `>`. Raises `VerifyException` if the text is invalid."""
    match = _SHARDING.fullmatch(_compact(text))
    if match is None:
        raise VerifyException(f"<{text}> is not a sharding, expected <@mesh, [{{…}}, …]>")
    dimensions = tuple(
        Dimension(parse_axes(axes), bool(is_open), int(priority) if priority else None)
        for axes, is_open, priority in _DIMENSION.findall(match[2])
    )
    if any(dimension.priority is not None and dimension.priority >= 2**63 for dimension in dimensions):
        raise VerifyException(f"<{text}>: a priority does not fit in 64 bits")
    groups = dict[str, tuple[str, str]]()
    for key, reduction, axes in _GROUP.findall(match[match.lastindex or 0] or ""):
        if groups.get(key, ("", ""))[0]:
            raise VerifyException(f"<{text}> has two lists of {key} axes")
        groups[key] = axes, reduction
    replicated, unreduced = groups.get("replicated", ("", "")), groups.get("unreduced", ("", ""))
    return Sharding(match[1], dimensions, parse_axes(replicated[0]), parse_axes(unreduced[0]), unreduced[1] or "sum")


_LEADING_FREE = re.compile(r"(?P<mesh>.*?, ?\[)(?P<free>(?:\{\}(?:, ?|(?=\])))*)(?P<rest>.*)", re.DOTALL)


def without_free_dimensions(sharding: ShardingAttr) -> tuple[ShardingAttr, int]:
    """Return the sharding without its leading dimensions that are neither sharded nor open, and their number.

    [{}, {}, {"x"}, {}]   ->   [{"x"}, {}], 2
    """
    match = _LEADING_FREE.fullmatch(sharding.data)
    if match is None:
        return sharding, 0
    return ShardingAttr(match["mesh"] + match["rest"]), match["free"].count("{}")


def with_free_dimensions(sharding: ShardingAttr, count: int) -> ShardingAttr:
    """Return the sharding with `count` more leading dimensions, which are neither sharded nor open."""
    match = _LEADING_FREE.fullmatch(sharding.data)
    assert match is not None, "the sharding lists its dimensions"
    rest = match["free"] + match["rest"]
    added = ", ".join(["{}"] * count) + (", " if count and not rest.startswith("]") else "")
    return ShardingAttr(match["mesh"] + added + rest)


def parse_mesh(text: str) -> Mesh:
    """Parse the text of a mesh between `<` and `>`.

    Raises `VerifyException` if the text is invalid, or the mesh violates Shardy's constraints.
    """
    if (match := _MESH.fullmatch(_compact(text))) is None:
        raise VerifyException(f'<{text}> is not a mesh, expected <["axis"=size, …]>')
    pairs = [(name[1:-1], int(size)) for name, size in _SIZE.findall(match[1])]
    devices = tuple(map(int, match[2].split(","))) if match[2] else ()
    mesh = Mesh(dict(pairs), devices)
    for name, size in pairs:
        if size < 1:
            raise VerifyException(f"axis '{name}' has size {size}, expected at least 1")
    if any(device < 0 for device in devices):
        raise VerifyException(f"device id {min(devices)} must not be negative")
    if len(mesh.sizes) != len(pairs):
        raise VerifyException(f"the axis names of the mesh must be distinct: {match[1]}")
    if not pairs and len(devices) > 1:
        raise VerifyException(f"a mesh without axes has {len(devices)} device ids, expected at most one")
    if pairs and devices:
        _check_devices(devices, prod(mesh.sizes.values()))
    return mesh


def _check_devices(devices: Sequence[int], count: int) -> None:
    if len(devices) != count:
        raise VerifyException(f"the product of the axis sizes is {count}, but there are {len(devices)} device ids")
    if sorted(devices) != list(range(count)):
        raise VerifyException(f"the device ids are {list(devices)}, expected each id from 0 to {count - 1} once")


def mesh_of(inside: Operation, name: str) -> Mesh | None:
    """Return the mesh of a sharding, which is given by name or inline.

    Returns None if the module around `inside` does not define a mesh with this name.
    """
    if name.startswith("mesh<"):
        return parse_mesh(name[5:-1])
    module = inside
    while (parent := module.parent_op()) is not None and not isinstance(module, ModuleOp):
        module = parent
    if not isinstance(module, ModuleOp):
        return None
    for op in module.ops:
        mesh, symbol = op.properties.get("mesh"), op.properties.get("sym_name")
        if isinstance(mesh, MeshAttr) and getattr(symbol, "data", None) == name[1:].strip('"'):
            return parse_mesh(mesh.data)
    return None


def is_in_module(op: Operation) -> bool:
    """Return whether the operation is inside a module, where the meshes that it names can be looked up."""
    return isinstance(op.get_toplevel_object(), ModuleOp)


def enclosing_manual_axes(op: Operation) -> set[str]:
    """Return the axes that enclosing manual computations bind."""
    bound = set[str]()
    parent = op.parent_op()
    while parent is not None:
        axes = parent.properties.get("manual_axes")
        if isinstance(axes, ManualAxesAttr):
            bound.update(axes.data)
        parent = parent.parent_op()
    return bound


def sharding_of(value: SSAValue) -> Sharding | None:
    """Return the sharding that is attached to a value; None if there is none.

    Raises `VerifyException` if the text of the attribute is not a valid sharding.
    """
    for use in value.uses:
        if use.operation.name == "sdy.data_flow_edge":
            return _parse_attribute(use.operation.properties.get("sharding"))
    if isinstance(value.owner, Block):
        return _sharding_of_argument(value.owner.parent_op(), value.owner.args.index(value))  # pyright: ignore
    op, index = value.owner, value.owner.results.index(value)  # pyright: ignore
    if op.name in COMPUTATION_NAMES:
        return _nth_sharding(op.properties.get("out_shardings"), index)
    if op.name.startswith("sdy."):
        for key in ("out_sharding", "sharding"):
            if (sharding := _parse_attribute(op.properties.get(key))) is not None:
                return sharding
    return _nth_sharding(op.attributes.get(SHARDING), index)


def _sharding_of_argument(op: Operation | None, index: int) -> Sharding | None:
    if op is None:
        return None
    if op.name == "func.func":
        attributes = op.properties.get("arg_attrs")
        if not isa(attributes, ArrayAttr[DictionaryAttr]) or index >= len(attributes.data):
            return None
        return _parse_attribute(attributes.data[index].data.get(SHARDING))
    if op.name not in COMPUTATION_NAMES:
        return None
    sharding = _nth_sharding(op.properties.get("in_shardings"), index)
    axes = op.properties.get("manual_axes")
    if sharding is None or not isinstance(axes, ManualAxesAttr):
        return sharding
    return _without_axes(sharding, axes.data)


def _without_axes(sharding: Sharding, names: Iterable[str]) -> Sharding:
    def keep(axes: Axes) -> Axes:
        return tuple(axis for axis in axes if axis.name not in names)

    dimensions = tuple(replace(dimension, axes=keep(dimension.axes)) for dimension in sharding.dimensions)
    return replace(
        sharding, dimensions=dimensions, replicated=keep(sharding.replicated), unreduced=keep(sharding.unreduced)
    )


def _parse_attribute(attribute: Attribute | None) -> Sharding | None:
    return parse_sharding(attribute.data) if isinstance(attribute, ShardingAttr) else None


def _nth_sharding(attribute: Attribute | None, index: int) -> Sharding | None:
    if not isinstance(attribute, ShardingPerValueAttr) or index >= len(attribute.data):
        return None
    return parse_sharding(attribute.data[index])


def check_sharding(subject: str, sharding: Sharding, type_: Attribute, mesh: Mesh | None, op: Operation) -> None:
    """Raise `VerifyException` unless the sharding is valid for a value of this type."""
    if mesh is None:
        raise VerifyException(f"{subject} names the mesh {sharding.mesh}, which the module does not define")
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
    """Raise `VerifyException` unless all listed axes belong to the mesh, and no two of them overlap or can be
    merged."""
    seen: list[Axis] = []
    for axes in lists:
        for index, axis in enumerate(axes):
            _check_axis(subject, axis, mesh)
            if index and axes[index - 1].size and axis.size and _can_merge(axes[index - 1], axis, mesh):
                raise VerifyException(f"{subject}: the adjacent sub-axes {axes[index - 1]} and {axis} must be merged")
            for other in seen:
                if axis == other:
                    raise VerifyException(f"{subject}: axis {axis} occurs more than once")
                if axis.overlaps(other, mesh):
                    raise VerifyException(f"{subject}: the axes {other} and {axis} overlap")
            seen.append(axis)


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


def _can_merge(first: Axis, second: Axis, mesh: Mesh) -> bool:
    return first.name == second.name and first.end(mesh) == second.pre_size


def merge_axes(axes: Iterable[Axis], mesh: Mesh) -> Axes:
    """Return the axes, with consecutive sub-axes of the same axis merged."""
    result: list[Axis] = []
    for axis in axes:
        if result and _can_merge(result[-1], axis, mesh):
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
            raise VerifyException(f"cannot apply {subject} axis {axis} to the operand's axes {axes_text(axes)}")
        last = remaining.pop()
        if axis.pre_size > last.pre_size:
            remaining.append(Axis(axis.name, last.pre_size, axis.pre_size // last.pre_size))
    return tuple(remaining)


def _is_end_of(part: Axis, whole: Axis, mesh: Mesh) -> bool:
    return part.pre_size >= whole.pre_size and part.pre_size % whole.pre_size == 0 and part.end(mesh) == whole.end(mesh)


def axes_text(axes: Axes) -> str:
    return "{" + ", ".join(map(str, axes)) + "}"


def _units(axes: Axes, others: Axes, mesh: Mesh) -> set[tuple[str, int]]:
    """Split the axes at the boundaries of the axes in both lists, so that two lists can be compared as sets."""
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
            "cannot change the reduction of the unreduced axes that operand and result share from "
            f"'{operand.reduction}' to '{result.reduction}'"
        )


def check_divisible(subject: str, extent: int, size: int) -> None:
    if extent != DYNAMIC_INDEX and extent % size:
        raise VerifyException(f"{subject} dimension size {extent} is not divisible by the manual axes size {size}")
