"""Write locations of nodes in JAX's form, with module paths as scopes and wrappers that name the pass.

Example:

    jit(step)/jvp(blocks.3)/attn/mm               blocks.3.attn, forward
    jit(step)/transpose(jvp(blocks.3))/attn/mm_1  blocks.3.attn, backward
"""

from __future__ import annotations

import re
from functools import cache
from itertools import groupby
from posixpath import commonpath
from typing import Any
from weakref import WeakKeyDictionary

import torch
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, NameLoc, StringAttr, UnknownLoc

REGION = "recompute.region"
POLICY = "recompute.policy"
"""The keys under which `torch.fx.traceback.annotate` stores the name of a user's region, and its policy."""
_INDEX = re.compile(r"\[(?:'([^']*)'|(\w+))\]")
_ROOT = re.compile(r"^[LG]\['[^']*'\]")
_LINE = re.compile(r'File "([^"]+)", line (\d+)')


def location_of(node: torch.fx.Node, is_backward: bool) -> LocationAttr:
    """Return the location of a node, with its module path, its region, its name, and the user's source line."""
    scope = scope_of(node)
    first, _, inner = scope.partition("/")
    wrapped = f"transpose(jvp({first}))" if is_backward else f"jvp({first})"
    path = "/".join(["jit(step)", wrapped, *([inner] if inner else []), node.name])
    return NameLoc(StringAttr(path), _line_of(node.meta.get("stack_trace")))


def scope_of(node: torch.fx.Node) -> str:
    """Return the scope of a node: its module path with its region.

    A backward node has the scope of the forward node whose gradient it computes.
    """
    path, region = _path_of(node), _region_of(node)
    if not region:
        return path
    outer = _outer_paths(node.graph).get((region, path), path)
    return "/".join(part for part in (outer, region, path[len(outer) :].strip("/")) if part)


def _path_of(node: torch.fx.Node) -> str:
    stack: dict[str, Any] = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    return "".join(_path(entry[0]) for entry in list(stack.values())[-1:])


def _region_of(node: torch.fx.Node) -> str:
    return str((node.meta.get("custom") or {}).get(REGION, ""))


def _outer_paths(graph: torch.fx.Graph) -> dict[tuple[str, str], str]:
    """Map each pair of region and module path to the path of the module that entered the region.

    Nodes do not record the module that entered the region. Its path is the common path of the region's nodes, which are
    consecutive in the forward pass and all inside this module.
    """
    if graph not in _OUTER:
        forward = (n for n in graph.nodes if n.op == "call_function" and "fwd_nn_module_stack" not in n.meta)
        outer: dict[tuple[str, str], str] = {}
        for region, run in groupby(forward, key=_region_of):
            paths = [_path_of(node) for node in run]
            for path in paths if region else ():
                outer.setdefault((region, path), commonpath(paths))
        _OUTER[graph] = outer
    return _OUTER[graph]


_OUTER = WeakKeyDictionary[torch.fx.Graph, dict[tuple[str, str], str]]()


@cache
def _path(expression: str) -> str:
    """Convert Dynamo's expression for a module, such as `L['self'].blocks[3].attn`, to a scope such as `blocks.3/attn`.

    The form `L['self']._modules['blocks']._modules['3'].attn` is converted to the same scope. An index is joined to the
    preceding name, but not to another index: `blocks[3][0]` becomes `blocks.3/0`, a scope inside `blocks.3`.
    """
    plain = _INDEX.sub(lambda match: f".{match[1] or match[2]}", _ROOT.sub("", expression))
    names = [name for name in plain.split(".") if name and name != "_modules"]
    parts = list[str]()
    for name in names:
        if name.isdecimal() and parts and not parts[-1].rpartition(".")[2].isdecimal():
            parts[-1] += f".{name}"
        else:
            parts.append(name)
    return "/".join(parts)


@cache
def _line_of(trace: str | None) -> LocationAttr:
    """Return the innermost line of a stack trace as a location."""
    positions = _LINE.findall(trace or "")
    if not positions:
        return UnknownLoc()
    file, line = positions[-1]
    return FileLineColLoc(StringAttr(file), IntAttr(int(line)), IntAttr(0))
