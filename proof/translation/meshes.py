"""Find unused Shardy meshes. The proof ignores a mesh to which no operation refers, because it neither computes nor
shards a value.

Example:
    sdy.mesh @unused = <["a"=2]>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation, Region

from ...dialects.constants.dense import DenseAttr
from ...support.operations import every_operation, name_of
from ..operations.operation_parts import attributes_of

MESH = "sdy.mesh"
_WORD = re.compile(r"[\w$.-]+")


def symbol_of(op: Operation) -> str | None:
    name = attributes_of(op).get("sym_name")
    return name.data if isinstance(name, StringAttr) else None


def meshes_of(module: ModuleOp) -> dict[str, Operation]:
    """Return the meshes of a module by name."""
    return {name: op for op in module.ops if name_of(op) == MESH and (name := symbol_of(op)) is not None}


def unused_meshes(module: ModuleOp) -> dict[str, Operation]:
    """Return the unused meshes by name. A mesh is unused if its name, quoted or not, occurs in no attribute or type of
    the module."""
    meshes = meshes_of(module)
    texts = {str(attribute) for attribute in _attributes(module, frozenset(meshes.values()))} if meshes else set[str]()
    # A name with other characters may be escaped in printed attributes, so it counts as used.
    return {
        name: op for name, op in meshes.items() if _WORD.fullmatch(name) and not any(name in text for text in texts)
    }


def _attributes(module: ModuleOp, meshes: frozenset[Operation]) -> Iterator[Attribute]:
    """Yield every attribute and type of the module, outside `meshes`, that may contain a mesh name."""
    visited = set[int]()
    for op in every_operation(module):
        if op in meshes:
            continue
        types = (
            value.type
            for value in (*op.results, *(argument for region in op.regions for argument in _arguments(region)))
        )
        for attribute in (*op.attributes.values(), *op.properties.values(), *types):
            if id(attribute) not in visited and not isinstance(attribute, DenseAttr | DenseIntOrFPElementsAttr):
                visited.add(id(attribute))
                yield attribute


def _arguments(region: Region) -> Iterator[BlockArgument]:
    return (argument for block in region.blocks for argument in block.args)
