"""The columns of a growing program: attributes of each operation, and of each value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from .traits import Traits


class ColumnFields(TypedDict):
    """The fields of a `Program` that come from `Columns`."""

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
    """Growing columns, as in `Program`; the number of an operation is its index."""

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
        """Append a value, and return its number. `root`: as in `Program`; the value itself if None."""
        number = len(self.maker)
        self.maker.append(maker)
        self.sizes.append(size)
        self.ranks.append(rank)
        self.root.append(number if root is None else root)
        return number

    def add_operation(
        self, name: str, traits: Traits, operands: Sequence[int], captured: Sequence[int], makes: Sequence[int]
    ) -> None:
        """Append an operation. `captured`: the values that its regions read."""
        self.names.append(name)
        self.traits.append(traits)
        operand_numbers = tuple(operands)
        self.operands.append(operand_numbers)
        is_simple = not captured and len(operand_numbers) < 2
        read = operand_numbers if is_simple else tuple(dict.fromkeys([*operand_numbers, *captured]))
        # Share one tuple if both are equal, which makes later comparisons fast.
        self.reads.append(operand_numbers if read == operand_numbers else read)
        self.makes.append(tuple(makes))

    def fields(self) -> ColumnFields:
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
