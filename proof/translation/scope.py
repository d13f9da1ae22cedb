"""Scopes of value numbering: the known facts about a region while its operations are translated to terms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from xdsl.ir import SSAValue

Exchange = tuple[int, int | tuple[str, int]]
"""The channel id of a collective, and its value: a term, or ("inside", head) for a term that depends on the arguments
of a region."""


class Branch(NamedTuple):
    """A region of a conditional: the index of the region, and the number of regions of the conditional."""

    region: int
    regions: int


@dataclass
class RegionScope:
    """The values that are visible in a region, and properties of the operations that run in it.

    Attributes:
        depth: Nesting depth of the region; 0 outside all regions.
        state: Term that represents the effects so far.
        entry_state: State at the start of the region, which identifies one execution of it.
        device: Term that represents the device that runs the region.
        enclosing: Scope of the enclosing region, or None.
        is_literal: Whether the meaning of the region is unknown, so that all operations and their order are compared.
        is_uniform: Whether all devices run the region the same number of times and in the same order.
        values: Terms of the values defined in the region, by the Python id of the value. Hashing values would be
            several times as slow. The ids stay valid because the program keeps the values alive.
        preserved: Terms of operations that must be preserved even if unused, in the order of their first occurrence.
        risks: Terms of operations that run and may fail or not terminate (`risks.py`).
        executed: The terms of the operations in `risks`, each with a flag that says whether it must stay after the
            preceding effects.
        exchanges: Channel id and value of each operation with a channel.
        chosen_branches: For each enclosing conditional, the branch that runs, by the term of the condition; tier 2
            only.
    """

    depth: int
    state: int
    entry_state: int
    device: int
    enclosing: RegionScope | None = None
    is_literal: bool = False
    is_uniform: bool = True
    values: dict[int, int] = field(default_factory=dict[int, int])
    preserved: dict[int, None] = field(default_factory=dict[int, None])
    risks: dict[int, None] = field(default_factory=dict[int, None])
    executed: dict[int, bool] = field(default_factory=dict[int, bool])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    chosen_branches: dict[int, Branch] = field(default_factory=dict[int, Branch])

    def define(self, values: Iterable[SSAValue], terms: Iterable[int]) -> None:
        """Record the terms of values that the region defines."""
        self.values.update(zip(map(id, values), terms, strict=True))

    def find(self, value: SSAValue) -> int | None:
        """Return the term of a value from this scope or an enclosing one, or None if it is not defined yet."""
        scope: RegionScope | None = self
        while scope is not None:
            if (number := scope.values.get(id(value))) is not None:
                return number
            scope = scope.enclosing
        return None

    def within(self) -> RegionScope:
        """Return a scope for the operations of a group: it sees the values of this scope and shares its records."""
        return replace(self, enclosing=self, values={})

    def for_callee(self, state: int) -> RegionScope:
        """Return a scope for the body of a called function: its effects follow `state`, and it sees no values of the
        caller."""
        return replace(self, state=state, enclosing=None, values={})


class FunctionTerms(NamedTuple):
    """Terms that a function computes.

    Attributes:
        results: Terms of the returned values.
        state: Term that represents the effects.
        preserved: Terms of operations that must be preserved even if unused.
        risks: Terms of operations that run and may fail or not terminate.
        exchanges: Channel id and value of each operation with a channel.
    """

    results: tuple[int, ...]
    state: int
    preserved: frozenset[int]
    risks: frozenset[int]
    exchanges: tuple[Exchange, ...]
