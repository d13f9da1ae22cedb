"""Meshes of Shardy that nothing refers to: they compute nothing and lay nothing out.

sdy.mesh @unused = <["a"=2]>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation, Region

from ..dialects.dense import DenseAttr
from ..dialects.every import every_operation
from .anatomy import attributes_of, name_of

MESH = "sdy.mesh"
_WORD = re.compile(r"[\w$.-]+")


def unused_meshes(module: ModuleOp) -> frozenset[Operation]:
    """The meshes whose name is in no attribute and no type of the module, quoted or not. Raises `Refusal`."""
    named = dict[str, Operation]()
    for op in module.ops:
        if name_of(op) == MESH and isinstance(name := attributes_of(op).get("sym_name"), StringAttr):
            named[name.data] = op
    if named:
        for text in {str(attribute) for attribute in _attributes(module, frozenset(named.values()))}:
            for word in _WORD.findall(text):
                named.pop(word, None)
    return frozenset(named.values())


def _attributes(module: ModuleOp, meshes: frozenset[Operation]) -> Iterator[Attribute]:
    """Every attribute and type that may hold a name."""
    seen = set[int]()
    for op in every_operation(module):
        if op in meshes:
            continue
        types = (value.type for value in (*op.results, *(each for region in op.regions for each in _arguments(region))))
        for attribute in (*op.attributes.values(), *op.properties.values(), *types):
            if id(attribute) not in seen and not isinstance(attribute, DenseAttr | DenseIntOrFPElementsAttr):
                seen.add(id(attribute))
                yield attribute


def _arguments(region: Region) -> Iterator[BlockArgument]:
    return (argument for block in region.blocks for argument in block.args)
