"""Find the sharding of a value, the mesh that a sharding names, and the axes that enclosing computations bind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from ...support.operations import operations_around
from .axes import Axes, Mesh, Sharding
from .sharding_text import parse_mesh, parse_sharding
from .shardings import ManualAxesAttr, MeshAttr, ShardingAttr, ShardingPerValueAttr

SHARDING = "sdy.sharding"
"""The attribute with the sharding of a function argument, or the shardings of the results of an operation."""
COMPUTATION_NAMES = frozenset({"sdy.manual_computation", "sdy.named_computation"})
"""The operations whose regions have their own shardings for arguments and results."""


def mesh_of(inside: Operation, name: str) -> Mesh | None:
    """Return the mesh that a sharding gives inline or by name, or None if the module around `inside` does not define a
    mesh with this name.
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
    """Return whether the operation is inside a module, so that its meshes can be looked up by name."""
    return isinstance(op.get_toplevel_object(), ModuleOp)


def enclosing_manual_axes(op: Operation) -> set[str]:
    """Return the axes that enclosing manual computations bind."""
    bound = set[str]()
    for around in operations_around(op):
        axes = around.properties.get("manual_axes")
        if isinstance(axes, ManualAxesAttr):
            bound.update(axes.data)
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
