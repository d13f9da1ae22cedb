"""Names by which users can refer to a value: its SSA name, the name of its operation, or its scope path in the model.

    %h0 = stablehlo.tanh %x : ... loc("jit(f)/jvp(block0)/attn/tanh")

has the names `h0` (or `%h0`), `stablehlo.tanh`, `tanh`, `attn/tanh` and `block0/attn/tanh`. Shell-style patterns are
matched against all of these names. The attribute `recompute.name` gives an operation additional names, as
`jax.ad_checkpoint.checkpoint_name` does. When a call or a segment is inlined, its names are transferred to the
operations that compute its results (`propagate_names` in `transforms/attributes/write_attributes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Operation

from ...dialects.names import Names
from ...support.operations import name_of
from ..step.jax_paths import path_of, scope_of, split_path


def names_of(op: Operation) -> tuple[str, ...]:
    """Return every name of the operation, with the user-given names and SSA names first."""
    ssa = [f"%{result.name_hint}" for result in op.results if result.name_hint]
    place = [*scope_of(op.location).path, *split_path(path_of(op.location))[-1:]]
    paths = ["/".join(place[start:]) for start in range(len(place))]
    return (*given_names(op), *ssa, *(name[1:] for name in ssa), name_of(op), *(path for path in paths if path))


def given_names(op: Operation) -> tuple[str, ...]:
    """Return the names in the attribute `recompute.name`."""
    attribute = op.attributes.get(Names.NAME)
    entries = cast(ArrayAttr[Attribute], attribute) if isinstance(attribute, ArrayAttr) else [attribute]
    return tuple(name.data for name in entries if isinstance(name, StringAttr))


_SHELL = frozenset("*?[")


def matches_of(operations: Iterable[Operation], patterns: Iterable[str]) -> dict[str, list[Operation]]:
    """Return the operations that each pattern matches, in program order.

    Names without wildcards are matched by hash lookup.
    """
    matches: dict[str, list[Operation]] = {pattern: [] for pattern in patterns}
    plain = {pattern for pattern in matches if _SHELL.isdisjoint(pattern)}
    globs = matches.keys() - plain
    for op in operations:
        names = names_of(op)
        for pattern in plain.intersection(names):
            matches[pattern].append(op)
        for pattern in globs:
            if any(fnmatchcase(name, pattern) for name in names):
                matches[pattern].append(op)
    return matches


def all_values_of_scope(pattern: str, operations: Iterable[Operation]) -> str | None:
    """Return the pattern that matches the values of a scope, such as `layer3/*` for `layer3`; None if no operation is
    in a scope with this name."""
    is_scope = any(f"/{pattern}/" in f"/{name}" for op in operations for name in names_of(op))
    return f"{pattern}/*" if is_scope else None


def is_named(op: Operation, patterns: Iterable[str]) -> bool:
    """Return whether any pattern matches any of the operation's names."""
    pattern_list = tuple(patterns)
    return bool(pattern_list) and any(fnmatchcase(name, pattern) for name in names_of(op) for pattern in pattern_list)
