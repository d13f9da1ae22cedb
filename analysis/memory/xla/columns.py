"""The columns of a program while it grows: what is said of each operation, and of each value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from .traits import Traits


class Fields(TypedDict):
    """Of a `Program`."""

    names: tuple[str, ...]
    traits: tuple[Traits, ...]
    operands: tuple[tuple[int, ...], ...]
    reads: tuple[tuple[int, ...], ...]
    makes: tuple[tuple[int, ...], ...]
    maker: tuple[int, ...]
    sizes: tuple[int, ...]
    ranks: tuple[int, ...]
    root: tuple[int, ...]
    constants: frozenset[int]


@dataclass
class Columns:
    """As in `Program`; an operation's number is its place."""

    names: list[str] = field(default_factory=list[str])
    traits: list[Traits] = field(default_factory=list[Traits])
    operands: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    reads: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    makes: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    maker: list[int] = field(default_factory=list[int])
    sizes: list[int] = field(default_factory=list[int])
    ranks: list[int] = field(default_factory=list[int])
    root: list[int] = field(default_factory=list[int])
    constants: set[int] = field(default_factory=set[int])

    def add_value(self, maker: int, size: int, rank: int, root: int | None = None) -> int:
        """Its number. `root`: as in `Program`, itself if not given."""
        number = len(self.maker)
        self.maker.append(maker)
        self.sizes.append(size)
        self.ranks.append(rank)
        self.root.append(number if root is None else root)
        return number

    def add_operation(
        self, name: str, traits: Traits, operands: Sequence[int], captured: Sequence[int], makes: Sequence[int]
    ) -> None:
        """`captured`: what its regions read."""
        self.names.append(name)
        self.traits.append(traits)
        listed = tuple(operands)
        self.operands.append(listed)
        read = tuple(dict.fromkeys([*listed, *captured])) if captured or len(listed) > 1 else listed
        # Mostly the same, and kept once: whoever compares the two is done at once.
        self.reads.append(listed if read == listed else read)
        self.makes.append(tuple(makes))

    def fields(self) -> Fields:
        return {
            "names": tuple(self.names),
            "traits": tuple(self.traits),
            "operands": tuple(self.operands),
            "reads": tuple(self.reads),
            "makes": tuple(self.makes),
            "maker": tuple(self.maker),
            "sizes": tuple(self.sizes),
            "ranks": tuple(self.ranks),
            "root": tuple(self.root),
            "constants": frozenset(self.constants),
        }
