"""Operations to insert, from `snippets.txt`: effects, unknown regions, tokens, marks, constants.

`$x` stands for a value, and `$t` for its type.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from ..balance import pieces
from ..tree import Operation, Program, TreeError, Value, read
from .sites import Edits, inner_places, pick, visible

SNIPPETS = (Path(__file__).parent / "snippets.txt").read_text().strip().split("\n\n")


def _read(text: str, operand: Value, seen: list[Value]) -> Operation:
    """Return the operation of a snippet, with visible values as operands."""
    free = {"%x": operand.type, "%s": "tensor<2xui64>", "%i": "tensor<i32>"}
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in free.items())
    body = text.replace("$x", "%x").replace("$t", operand.type)
    count = len(pieces(body.rpartition("-> ")[2].strip("()")))
    names = f"%r:{count} = " if count else ""
    block = read(f'"builtin.module"() ({{\n^bb0({arguments}):\n{names}{body}\n}}) : () -> ()').body
    known = {block.arguments[0]: operand}
    for argument in block.arguments[1:]:
        alike = [value for value in seen if value.type == argument.type]
        known |= {argument: alike[0]} if alike else {}
    for op in block.operations[0].walk():
        op.operands = [known.get(value, value) for value in op.operands]
    return block.operations[0]


def insert(program: Program, rng: Random) -> str | None:
    if (place := pick(rng, inner_places(program))) is None:
        return None
    seen = visible(program, place.op)
    if (operand := pick(rng, seen)) is None:
        return None
    try:
        op = _read(rng.choice(SNIPPETS), operand, seen)
    except TreeError:
        # An edit before this one has made a type that is none.
        return None
    place.block.operations.insert(place.at, op)
    if op.results and op.results[0].type == operand.type and rng.random() < 0.7:
        place.op.operands = [op.results[0] if value is operand else value for value in place.op.operands]
    return f"{op.name} put in before {place.op.name}"


EDITS: Edits = {"snippet": insert}
