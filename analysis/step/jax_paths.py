"""Parse JAX's location paths. A path contains the named scopes and called functions around an operation, and the
operation's direction of differentiation.

JAX writes one path per operation. Transformations wrap parts of it:

    jit(step)/jvp(model)/block0/tanh              forward, scope model/block0
    jit(step)/transpose(jvp(model))/block0/mul    backward, the same scope
    jit(step)/jvp(block0)/jit(_where)/select_n    forward, in block0, through the function _where
    jit(step)/jvp(transpose(jvp(block0)))/mul     forward: a gradient that is differentiated again
    jit(step)/sub                                 neither
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from xdsl.dialects.builtin import FusedLoc, NameLoc
from xdsl.ir import Attribute

from ...support.locations import parts_of
from .direction import Direction

_WRAPPER = re.compile(r"^([\w.]+)\((.*)\)$")
# Parts that mark repeated computation.
_REPETITIONS = frozenset({"checkpoint", "rematted_computation", "recompute"})
# Parts that JAX and this library insert. They are not user-given scopes. From jax 0.12 on, loop bodies are in
# `eval_jaxpr`.
_PLUMBING = _REPETITIONS | {"eval_jaxpr"}
_CALLS = frozenset({"jit", "pjit"})


@dataclass(frozen=True)
class JaxPath:
    """A parsed location path.

    Attributes:
        path: The named scopes, from the outside in.
        functions: The called functions, from the outside in, without the entry function.
        direction: The direction of differentiation.
    """

    path: tuple[str, ...]
    functions: tuple[str, ...]
    direction: Direction


NOWHERE = JaxPath((), (), Direction.NONE)


def path_of(location: Attribute) -> str:
    """Return the path in the location of an operation, or "" if there is none."""
    if type(location) is NameLoc:
        # Nearly every location is a name, and most names are paths.
        name = location.desc.data
        if name and name[-1] != ":":
            return name
    visited, pending = set[int](), [location]
    while pending:
        part = pending.pop()
        if isinstance(part, NameLoc) and not part.desc.data.endswith(":"):
            if part.desc.data:
                return part.desc.data
        elif isinstance(part, NameLoc | FusedLoc) and id(part) not in visited:
            # `"while:"("…/while"(…))`: JAX wraps the path in the kind of the call.
            visited.add(id(part))
            pending.extend(reversed(parts_of(part)))
    return ""


def split_path(path: str) -> list[str]:
    """Split a path at the slashes outside parentheses."""
    parts, depth = list[str](), 0
    for piece in path.split("/"):
        if depth:
            parts[-1] += f"/{piece}"
        else:
            parts.append(piece)
        depth += piece.count("(") - piece.count(")")
    return parts


def unwrap(part: str) -> tuple[list[str], str]:
    """Split a part of a path into wrappers and content: `transpose(jvp(block0))` gives `["transpose", "jvp"],
    "block0"`."""
    wrappers = list[str]()
    while match := _WRAPPER.match(part):
        wrappers.append(match[1])
        part = match[2]
    return wrappers, part


def _direction(wrappers: list[str]) -> Direction:
    """Return the direction of the outermost differentiation, because a gradient inside a loss is part of the forward
    pass."""
    if "jvp" not in wrappers:
        return Direction.NONE
    outermost = next(wrapper for wrapper in wrappers if wrapper in _DIFFERENTIATIONS)
    return Direction.BACKWARD if outermost == "transpose" else Direction.FORWARD


_DIFFERENTIATIONS = frozenset({"jvp", "transpose"})


# The paths of a step are parsed by several passes.
@lru_cache(maxsize=100_000)
def parse_path(path: str) -> JaxPath:
    """Parse the path of an operation. The last part of the path is the operation itself."""
    scope, _, last = path.rpartition("/")
    # A slash inside parentheses is not a separator: `jvp(model/block0)`.
    is_split = ")" not in last and scope.count("(") == scope.count(")")
    return _parse_scope(scope if is_split else "/".join(split_path(path)[:-1]))


# Keyed without the operation, so that all operations of a scope share one entry and large steps fit.
@lru_cache(maxsize=100_000)
def _parse_scope(scope: str) -> JaxPath:
    if not scope:
        return NOWHERE
    scopes = list[str]()
    functions = list[str]()
    direction = Direction.NONE
    for index, part in enumerate(split_path(scope)):
        wrappers, inner = unwrap(part)
        if direction is Direction.NONE:
            direction = _direction(wrappers)
        if not inner or inner in _PLUMBING:
            continue
        if _CALLS & set(wrappers):
            functions.extend([inner] if index else [])
        else:
            scopes.extend(inner.split("/"))
    return JaxPath(tuple(scopes), tuple(functions), direction)


def scope_of(location: Attribute) -> JaxPath:
    """Return the parsed path of the operation with this location."""
    return parse_path(path_of(location))


@lru_cache(maxsize=100_000)
def transpositions(path: str) -> int | None:
    """Return the number of reverse differentiations that the path contains; None for a path without a differentiation.

    Operations that `jax.checkpoint` or a copy recomputes belong to the backward pass, but have the same number as the
    forward operations that they repeat.
    """
    if not _DIFFERENTIATED.search(path):
        return None
    return path.count("transpose(") - len(_REPEATED.findall(path))


_REPEATED = re.compile(r"\b(?:rematted_computation|recompute)\b")
_DIFFERENTIATED = re.compile(r"\b(?:jvp|transpose)\(|\brematted_computation\b|\bcheckpoint/")


@lru_cache(maxsize=100_000)
def backward_path(path: str) -> str:
    """Return the path of a copy in the backward pass: `jvp(block0)/tanh` -> `transpose(jvp(block0))/recompute/tanh`."""
    parts = split_path(path)
    for index, part in enumerate(parts):
        wrappers, _ = unwrap(part)
        if _direction(wrappers) is Direction.FORWARD:
            return "/".join([*parts[:index], f"transpose({part})", "recompute", *parts[index + 1 :]])
    return "/".join([*parts[:-1], "transpose(jvp())", "recompute", parts[-1]])


@lru_cache(maxsize=100_000)
def backward_path_in_loop(path: str, reader: str) -> str:
    """Return the path of a copy in the loop with the path `reader`, marked as backward at the level of differentiation
    of that loop.

    For `jvp()/while/body/jvp()/sin` and the reader `jvp()/while/body/transpose(jvp())/while`, this is
    `jvp()/while/body/transpose(jvp())/recompute/sin`.
    """
    parts, readers = split_path(path), split_path(reader)
    split_index = next(
        (index for index, (part, other) in enumerate(zip(parts, readers, strict=False)) if part != other), None
    )
    if split_index is None or "transpose" not in (wrappers := unwrap(readers[split_index])[0]):
        return backward_path(path)
    wrapped = f"transpose({parts[split_index]})" if wrappers[0] == "transpose" else readers[split_index]
    return "/".join([*parts[:split_index], wrapped, "recompute", *parts[split_index + 1 :]])


@lru_cache(maxsize=100_000)
def forward_path(path: str) -> str:
    """Return the forward path of an operation that `jax.checkpoint` recomputes.

    `transpose(jvp(block0))/jvp(block0)/checkpoint/rematted_computation/tanh` -> `jvp(block0)/tanh`.
    """
    parts = list[str]()
    for part in split_path(path):
        is_backward = _direction(unwrap(part)[0]) is Direction.BACKWARD
        forward = part.replace("transpose(", "", 1)[:-1] if is_backward else part
        if part not in _REPETITIONS and [forward] != parts[-1:]:
            parts.append(forward)
    return "/".join(parts)
