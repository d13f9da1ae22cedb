"""Scopes of value numbering: the values, the state and the records of a region while its operations are numbered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from xdsl.ir import SSAValue

Exchange = tuple[int, int | tuple[str, int]]
"""A channel and the exchanged value: a term, or the head of a term that depends on a region's arguments."""


class Branch(NamedTuple):
    """A region of a conditional: its index, and the number of regions of the conditional."""

    region: int
    regions: int


@dataclass
class RegionScope:
    """Values that are visible in a region, and records of the operations that run in it.

    Attributes:
        depth: Nesting depth of the region; 0 outside all regions.
        state: Term of the effects so far.
        entry_state: State at the start of the region, which identifies one execution of it.
        device: Term of the device that runs the region.
        enclosing: Scope of the enclosing region, or None.
        is_literal: Whether the meaning of the region is unknown, so that all operations and their order are compared.
        is_uniform: Whether all devices run the region equally often and in the same order.
        values: Terms of the values defined in the region, by the id of the value: hashing values is several times as
            slow, and the program keeps them alive.
        preserved: Terms of operations that must be preserved even if unused, in the order of their first occurrence.
        risks: Terms of operations that run and may fail or not terminate (`risks.py`).
        executed: The operations of `risks`, and for each whether it must stay after the effects before it.
        exchanges: Channel and exchanged value of each operation with a channel.
        chosen_branches: For each deciding term of the enclosing conditionals, the branch that runs; only for tier 2.
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
        """Return a scope for operations that run in place: it sees the values of this scope and shares its records."""
        return replace(self, enclosing=self, values={})

    def for_callee(self, state: int) -> RegionScope:
        """Return a scope for the body of a called function: it starts in `state` and sees no values of the caller."""
        return replace(self, state=state, enclosing=None, values={})


class FunctionTerms(NamedTuple):
    """Terms of a function.

    Attributes:
        results: Terms of the returned values.
        state: Term of the effects.
        preserved: Terms of operations that must be preserved even if unused.
        risks: Terms of operations that run and may fail or not terminate.
        exchanges: Channel and exchanged value of each operation with a channel.
    """

    results: tuple[int, ...]
    state: int
    preserved: frozenset[int]
    risks: frozenset[int]
    exchanges: tuple[Exchange, ...]
