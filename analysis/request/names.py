"""How a user names a value: by its SSA name, by its operation, or by its place in the model.

    %h0 = stablehlo.tanh %x : ... loc("jit(f)/jvp(block0)/attn/tanh")

is `h0` (or `%h0`), `stablehlo.tanh`, `tanh`, `attn/tanh`, `block0/attn/tanh`; shell-style patterns work on each.
The attribute `recompute.name` gives an operation a name of its own, as `jax.ad_checkpoint.checkpoint_name` does. What
is said of a call or a segment by name holds for the operations that make its results, once it is inlined.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from fnmatch import fnmatchcase
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.recompute import Names
from ...rules.names import name_of
from ..step.jax_paths import path_of, scope_of, split_path


def names_of(op: Operation) -> tuple[str, ...]:
    """Every name of the operation, the most particular first."""
    ssa = [f"%{result.name_hint}" for result in op.results if result.name_hint]
    place = [*scope_of(op.location).path, *split_path(path_of(op.location))[-1:]]
    paths = ["/".join(place[start:]) for start in range(len(place))]
    return (*given_names(op), *ssa, *(name[1:] for name in ssa), name_of(op), *(path for path in paths if path))


def given_names(op: Operation) -> tuple[str, ...]:
    """What `recompute.name` says."""
    given = op.attributes.get(Names.NAME)
    listed = cast(ArrayAttr[Attribute], given) if isinstance(given, ArrayAttr) else [given]
    return tuple(name.data for name in listed if isinstance(name, StringAttr))


def hand_on_names(holder: Operation, values: Iterable[SSAValue], inside: Container[Operation]) -> None:
    """Give the names of a call or a segment to the operations `inside` that make what stands for its results."""
    if not (given := given_names(holder)):
        return
    for owner in dict.fromkeys(value.owner for value in values):
        if isinstance(owner, Operation) and owner in inside:
            add_names(owner, given)


def add_names(op: Operation, given: Iterable[str]) -> None:
    """Give names to an operation, before those that it has."""
    names = [StringAttr(name) for name in dict.fromkeys((*given, *given_names(op)))]
    op.attributes[Names.NAME] = names[0] if len(names) == 1 else ArrayAttr(names)


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
