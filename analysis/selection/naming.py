"""How a user names a value: by its SSA name, by its operation, or by its place in the model.

    %h0 = stablehlo.tanh %x : ... loc("jit(f)/jvp(block0)/attn/tanh")

is `h0` (or `%h0`), `stablehlo.tanh`, `tanh`, `attn/tanh`, `block0/attn/tanh`; shell-style patterns work on each.
The attribute `recompute.name` gives an operation a name of its own, as `jax.ad_checkpoint.checkpoint_name` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ...dialects.recompute import Names
from ...rules.names import name_of
from ..scopes import path_of, scope_of, split_path


def names_of(op: Operation) -> tuple[str, ...]:
    """Every name of the operation, the most particular first."""
    own = op.attributes.get(Names.NAME)
    ssa = [f"%{result.name_hint}" for result in op.results if result.name_hint]
    place = [*scope_of(op.location).path, *split_path(path_of(op.location))[-1:]]
    paths = ["/".join(place[start:]) for start in range(len(place))]
    given = [own.data] if isinstance(own, StringAttr) else []
    return (*given, *ssa, *(name[1:] for name in ssa), name_of(op), *(path for path in paths if path))


_SHELL = frozenset("*?[")


def named_by(operations: Iterable[Operation], patterns: Iterable[str]) -> dict[str, list[Operation]]:
    """The operations that each pattern names, in their order. Plain names are looked up, however many there are."""
    found: dict[str, list[Operation]] = {pattern: [] for pattern in patterns}
    plain = {pattern for pattern in found if _SHELL.isdisjoint(pattern)}
    others = found.keys() - plain
    for op in operations:
        names = names_of(op)
        for pattern in plain.intersection(names):
            found[pattern].append(op)
        for pattern in others:
            if any(fnmatchcase(name, pattern) for name in names):
                found[pattern].append(op)
    return found


def is_named(op: Operation, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches one of the operation's names."""
    listed = tuple(patterns)
    return bool(listed) and any(fnmatchcase(name, pattern) for name in names_of(op) for pattern in listed)
