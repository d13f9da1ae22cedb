"""The text of meshes and shardings: read it as data, and add or remove leading dimensions.

@mesh, [{"x", "y":(1)2}, {?}], replicated={"z"}      a sharding
["x"=4, "y"=2], device_ids=[1, 0, …]                 a mesh
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from xdsl.parser import AttrParser
from xdsl.utils.exceptions import VerifyException

from .axes import Axes, Axis, Dimension, Mesh, Sharding
from .shardings import ShardingAttr

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
    """Parse an axis: `"x"` or `"x":(2)4`"""
    name = parser.parse_str_literal()
    if parser.parse_optional_punctuation(":") is None:
        return Axis(name)
    parser.parse_punctuation("(")
    before = parser.parse_integer(allow_boolean=False, allow_negative=False)
    parser.parse_punctuation(")")
    return Axis(name, before, parser.parse_integer(allow_boolean=False, allow_negative=False))


def parse_axis_list(parser: AttrParser) -> Axes:
    """Parse a list of axes: `{"x", "y"}`"""
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
    """Return the sharding without its leading free dimensions, and their number. A free dimension is neither sharded
    nor open.

    [{}, {}, {"x"}, {}]   ->   [{"x"}, {}], 2
    """
    match = _LEADING_FREE.fullmatch(sharding.data)
    if match is None:
        return sharding, 0
    return ShardingAttr(match["mesh"] + match["rest"]), match["free"].count("{}")


def with_free_dimensions(sharding: ShardingAttr, count: int) -> ShardingAttr:
    """Return the sharding with `count` more leading free dimensions (neither sharded nor open)."""
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
