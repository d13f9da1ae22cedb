"""An independent count of what segments save for the backward pass, on the text of a flat step.

Phases and scopes are read from locations; storage is followed through views and barriers. A buffer counts for the scope
in whose forward pass it is made, once a gradient operation or a copy reads it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ModuleOp, NameLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

VIEWS = {
    "stablehlo.reshape",
    "stablehlo.broadcast_in_dim",
    "stablehlo.transpose",
    "stablehlo.optimization_barrier",
    "recompute.depend",
}
STRIDED = {"stablehlo.broadcast_in_dim", "stablehlo.transpose"}


def saved_by_scope(module: ModuleOp, scopes: Sequence[str]) -> dict[str, int]:
    """Return the bytes saved by each of these scopes in the first function of the module."""
    block = next(op for op in module.ops if isinstance(op, FuncOp)).body.block
    assert block.last_op is not None, "it returns something"
    returned = {storage_of(value) for value in block.last_op.operands}
    saved = defaultdict[str, int](int)
    seen = set[SSAValue]()
    for op in block.ops:
        if not is_backward(op):
            continue
        for value in read_by(op):
            storage = storage_of(value)
            maker = storage.owner
            if storage in seen or storage in returned or not isinstance(maker, Operation) or is_backward(maker):
                continue
            seen.add(storage)
            path = scope_of(maker)
            for scope in scopes if not is_from_constants(maker) else ():
                if path == scope or path.startswith(f"{scope}/"):
                    saved[scope] += size_of(storage)
    return dict(saved)


def read_by(op: Operation) -> list[SSAValue]:
    if op.name == "stablehlo.optimization_barrier":
        return []
    inside = {inner for inner in op.walk()}
    return [
        value
        for inner in inside
        for value in inner.operands
        if not (isinstance(value.owner, Operation) and value.owner in inside)
        and not (isinstance(value, BlockArgument) and value.block.parent_op() in inside)
    ]


def storage_of(value: SSAValue) -> SSAValue:
    """Return the value that owns the storage; a reshape after a transpose or broadcast copies, and so owns its own."""
    owner = value.owner
    while isinstance(owner, Operation) and owner.name in VIEWS:
        source = owner.operands[0].owner
        if owner.name == "stablehlo.reshape" and isinstance(source, Operation) and source.name in STRIDED:
            break
        at = owner.results.index(value) if len(owner.results) > 1 else 0  # pyright: ignore[reportArgumentType]
        value = owner.operands[at]
        owner = value.owner
    return value


def is_from_constants(op: Operation) -> bool:
    """Return whether the value depends on no argument."""
    values = read_by(op)
    return all(isinstance(value.owner, Operation) and is_from_constants(value.owner) for value in values)


def path_of(op: Operation) -> str:
    location = op.location
    return location.desc.data if isinstance(location, NameLoc) else ""


def is_backward(op: Operation) -> bool:
    return "recompute.copy" in op.attributes or "transpose(" in path_of(op)


def scope_of(op: Operation) -> str:
    match = re.search(r"jvp\(([^()]*)\)", path_of(op))
    return match[1] if match else ""


def size_of(value: SSAValue) -> int:
    """Return the bytes of a tensor: 128 for `tensor<4x8xf32>`; a boolean takes one byte."""
    match = re.fullmatch(r"tensor<((?:\d+x)*)[a-z]+(\d+)>", str(value.type))
    assert match is not None, str(value.type)
    return prod(int(extent) for extent in match[1].split("x") if extent) * max(1, int(match[2]) // 8)
