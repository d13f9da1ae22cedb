"""Positions where a tree can be edited, and the tables of edits.

An edit changes the program in place and describes what it did; it returns None if it finds nothing to change.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple, TypeVar

from ..tree import Block, Operation, Program, Value

T = TypeVar("T")
Edit = Callable[[Program, Random], str | None]
Edits = dict[str, Edit]


class Place(NamedTuple):
    """Operation, with its block and position."""

    block: Block
    at: int
    op: Operation


def pick(rng: Random, items: Sequence[T]) -> T | None:
    return rng.choice(items) if items else None


def places(program: Program) -> list[Place]:
    """Return the places of all operations except the module."""
    return list(_places_below(program.module))


def _places_below(op: Operation) -> Iterator[Place]:
    for block in op.blocks():
        for index, inner in enumerate(block.operations):
            yield Place(block, index, inner)
            yield from _places_below(inner)


def operations(program: Program) -> list[Operation]:
    return [place.op for place in places(program)]


def inner_places(program: Program) -> list[Place]:
    """Return the places of all operations below the top level."""
    top = program.body
    return [place for place in places(program) if place.block is not top]


def blocks(program: Program) -> list[Block]:
    return [block for op in program.module.walk() for block in op.blocks()]


def regions(program: Program) -> list[tuple[Operation, int]]:
    """Return each operation with the index of each of its regions, without that of the module."""
    return [(op, index) for op in operations(program) for index in range(len(op.regions))]


def values(program: Program) -> list[Value]:
    actual = [value for op in operations(program) for value in op.results]
    return actual + [value for block in blocks(program) for value in block.arguments]


def visible(program: Program, op: Operation) -> list[Value]:
    """Return the values defined before the operation, in its block and in enclosing ones."""
    return _visible(program.module, op, []) or []


def _visible(around: Operation, wanted: Operation, before: list[Value]) -> list[Value] | None:
    for block in around.blocks():
        matches = [*before, *block.arguments]
        for op in block.operations:
            if op is wanted:
                return matches
            inside = _visible(op, wanted, [] if op.name == "func.func" else matches)
            if inside is not None:
                return inside
            matches += op.results
    return None


def replace_uses(program: Program, old: Value, new: Value) -> None:
    for op in program.module.walk():
        op.operands = [new if value is old else value for value in op.operands]


def uses(program: Program) -> dict[Value, int]:
    """Return the number of uses of each value."""
    counts: dict[Value, int] = {}
    for op in program.module.walk():
        for value in op.operands:
            counts[value] = counts.get(value, 0) + 1
    return counts


def copied(op: Operation) -> Operation:
    """Return a copy with regions and results of its own, which reads the operands of the original."""
    copy: Operation = pickle.loads(pickle.dumps(op))
    free: dict[Value, Value] = {}
    for ours, theirs in zip(copy.walk(), op.walk(), strict=True):
        free.update(zip(ours.operands, theirs.operands, strict=True))
    own = {value for inner in copy.walk() for value in inner.results}
    own |= {value for inner in copy.walk() for block in inner.blocks() for value in block.arguments}
    for operation in copy.walk():
        operation.operands = [value if value in own else free[value] for value in operation.operands]
    return copy


def unquoted(text: str) -> str:
    """Return the name that a string or symbol denotes."""
    return text.lstrip("@").strip('"')
