"""Named segments of a step. A pattern selects them from the scopes in locations and from attributes (`find_segments`).
A scope that is entered several times has several segment instances (`scope_repetitions.py`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ...dialects.names import Names
from ...options.selection import BadSelection, Selection
from ...support.operations import every_operation
from ...support.suggestions import similar_names
from ..step.jax_paths import scope_of
from ..step.phases import Phases
from .scope_repetitions import Path, numbered_repetitions

MIN_MODEL_SHARE = 0.9
"""A scope that contains at least this share of the forward operations is the whole model, not one of its blocks."""
MAX_SCOPES = 10
"""The maximum number of scopes that a message lists if a pattern matches no segment."""


@dataclass(eq=False)
class NoSuchSegment(BadSelection):
    """Raised for a pattern that matches no scope. The dataclass is not frozen, because Python assigns the traceback of
    an exception.

    Attributes:
        scopes: The existing scopes, for the message.
        option: The option that contains the pattern, for the message; "" for `segments`.
    """

    pattern: str
    scopes: tuple[str, ...]
    option: str = ""

    def __str__(self) -> str:
        failure = f"{f'{self.option}: ' if self.option else ''}no segment matches '{self.pattern}'"
        if not self.scopes:
            remedy = "in JAX, name parts of the model with jax.named_scope or recompute.jax.block"
            return f"{failure}: the step contains no named scopes; {remedy}"
        if near := similar_scopes(self.pattern, self.scopes):
            return f"{failure}; similar segments are: {', '.join(near)}"
        others = len(self.scopes) - MAX_SCOPES
        more = f" and {others} more" if others > 0 else ""
        return f"{failure}; the scopes are: {', '.join(self.scopes[:MAX_SCOPES])}{more}"


def similar_scopes(pattern: str, scopes: Sequence[str]) -> list[str]:
    """Return at most `MAX_SCOPES` names that resemble the pattern or contain it: full names of scopes, or their last
    components.

    Wildcards around the pattern are ignored.
    """
    bare = pattern.strip("*?")
    near = similar_names(bare, dict.fromkeys([*scopes, *(scope.rpartition("/")[2] for scope in scopes)]), MAX_SCOPES)
    containing = [scope for scope in scopes if bare and bare.lower() in scope.lower()]
    return list(dict.fromkeys([*near, *containing]))[:MAX_SCOPES]


def find_segments(phases: Phases, pattern: str) -> Mapping[Operation, str]:
    """Return the segment instance of each forward operation that is in a segment.

    Args:
        phases: The phases of the step.
        pattern: `auto`, to use scopes of the model's blocks; `none`, to use only segment attributes; or a shell-style
            pattern for the path or the last name of a scope (`block*`, `model/layer?`).

    Raises:
        NoSuchSegment: The pattern matches no scope.
    """
    stated = _stated_segments(phases, "auto" if pattern == "none" else pattern)
    if pattern == "none" or (stated and pattern == "auto"):
        return stated
    paths = {op: path for op, path in _paths(phases).items() if op not in stated}
    chosen = _auto(paths) if pattern == "auto" else _matching(pattern)
    segment_path = {op: prefix for op, path in paths.items() if (prefix := chosen(path)) is not None}
    if not segment_path and not stated and pattern != "auto" and not any(map(chosen, _inner_paths(phases))):
        raise NoSuchSegment(pattern, scope_names(phases))
    names = numbered_repetitions(segment_path) | stated
    return {op: names[op] for op in phases.order.operations if op in names}


def inner_scopes(phases: Phases, pattern: str) -> list[str]:
    """Return the scopes that match the pattern and are inside forward loops or branches."""
    chosen = _matching(pattern)
    matches = dict.fromkeys(prefix for path in _inner_paths(phases) if (prefix := chosen(path)) is not None)
    return ["/".join(prefix) for prefix in matches]


def named_segments(phases: Phases, selection: Selection) -> Mapping[Operation, str] | None:
    """Return the segments that `auto` finds; None if the selection itself gives segments or checkpoints."""
    if selection.segments != "auto" or selection.checkpoints is not None:
        return None
    return find_segments(phases, "auto")


def segments_of_gradients(phases: Phases, pattern: str = "auto") -> Mapping[Operation, str]:
    """Return the scope of each gradient operation that is in a scope. The scope is also the name of the corresponding
    forward segment's first instance."""
    forward, chosen = _paths(phases), _matching(pattern)
    if pattern == "auto":
        chosen = _auto(forward)
    scopes = ((op, scope_of(op.location).path) for op in phases.order.operations if phases.is_gradient(op))
    return {op: "/".join(prefix) for op, path in scopes if path and (prefix := chosen(path)) is not None}


def instance_name(segment: str) -> str:
    """Return the scope that a segment instantiates: `layer` for `layer#1`."""
    return segment.partition("#")[0]


def _stated_segments(phases: Phases, pattern: str) -> dict[Operation, str]:
    """Return the segments that attributes of operations name, if they match the pattern. They take precedence over
    scopes.

    An operation is in the innermost of nested segments; a pattern that matches an outer segment also selects the
    segments inside it.
    """
    attributes = ((op, op.attributes.get(Names.SEGMENT)) for op in phases.order.operations if phases.is_forward(op))
    stated = {op: segment.data for op, segment in attributes if isinstance(segment, StringAttr)}
    chosen = _matching(pattern)
    return {op: name for op, name in stated.items() if pattern == "auto" or chosen(tuple(name.split("/"))) is not None}


def scope_names(phases: Phases) -> tuple[str, ...]:
    """Return every scope of the forward pass, every segment that attributes define, and their parents, sorted."""
    stated = (tuple(segment.split("/")) for segment in set(_stated_segments(phases, "auto").values()))
    paths = [*_paths(phases).values(), *_inner_paths(phases), *stated]
    return tuple(sorted({"/".join(path[:depth]) for path in paths for depth in range(1, len(path) + 1)}))


def _paths(phases: Phases) -> dict[Operation, Path]:
    """Return the scope paths of the forward operations, or the names of called functions if no operation has a
    scope."""
    scopes = {op: scope_of(op.location) for op in phases.order.operations if phases.is_forward(op)}
    scoped = {op: scope.path for op, scope in scopes.items() if scope.path}
    return scoped or {op: scope.functions for op, scope in scopes.items() if scope.functions}


def _inner_paths(phases: Phases) -> list[Path]:
    """Return the scope paths of the operations inside forward loops and branches."""
    outer = [op for op in phases.order.operations if op.regions and phases.is_forward(op)]
    paths = dict.fromkeys(scope_of(inner.location).path for op in outer for inner in every_operation(op)[1:])
    return [path for path in paths if path]


def _auto(paths: Mapping[Operation, Path]) -> Callable[[Path], Path | None]:
    """Find the level of scopes that become segments. Return a function from a path to its scope at that level.

    The search descends as long as a scope that is entered once contains nearly all operations. A scope that is entered
    repeatedly is a layer, regardless of its share of the operations.
    """
    inside, depth, level = paths, 1, dict[Operation, Path]()
    while inside:
        level = {op: path[:depth] for op, path in inside.items()}
        largest, share = Counter(level.values()).most_common(1)[0]
        deeper = {op: path for op, path in inside.items() if path[:depth] == largest and len(path) > depth}
        entered = len({name for op, name in numbered_repetitions(level).items() if level[op] == largest})
        if not deeper or entered > 1 or share < MIN_MODEL_SHARE * len(inside):
            break
        inside, depth = deeper, depth + 1
    siblings = set(level.values())
    return lambda path: path[:depth] if path[:depth] in siblings else None


def _matching(pattern: str) -> Callable[[Path], Path | None]:
    def choose_path(path: Path) -> Path | None:
        prefixes = (path[:depth] for depth in range(1, len(path) + 1))
        return next(
            (p for p in prefixes if fnmatchcase("/".join(p), pattern) or fnmatchcase(p[-1], pattern)),
            None,
        )

    return choose_path
