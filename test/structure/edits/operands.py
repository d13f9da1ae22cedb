"""Edits of operands, results and types."""

from __future__ import annotations

from random import Random

from ..tree import Operation, Program, Value
from .literals import TYPES, tweak
from .sites import Edits, inner_places, operations, pick, replace_uses, values, visible


def _reading(program: Program, at_least: int) -> list[Operation]:
    return [op for op in operations(program) if len(op.operands) >= at_least]


def swap(program: Program, rng: Random) -> str | None:
    if (op := pick(rng, _reading(program, 2))) is None:
        return None
    i, j = rng.sample(range(len(op.operands)), 2)
    op.operands[i], op.operands[j] = op.operands[j], op.operands[i]
    return f"operands {i} and {j} of {op.name} swapped"


def drop(program: Program, rng: Random) -> str | None:
    if (op := pick(rng, _reading(program, 1))) is None:
        return None
    index = rng.randrange(len(op.operands))
    del op.operands[index]
    return f"operand {index} of {op.name} dropped"


def duplicate(program: Program, rng: Random) -> str | None:
    if (op := pick(rng, _reading(program, 1))) is None:
        return None
    index = rng.randrange(len(op.operands))
    op.operands.insert(index, op.operands[index])
    return f"operand {index} of {op.name} doubled"


def replace(program: Program, rng: Random) -> str | None:
    """Replace an operand by another visible value, mostly of the same type."""
    if (op := pick(rng, _reading(program, 1))) is None:
        return None
    index = rng.randrange(len(op.operands))
    seen, old = visible(program, op), op.operands[index]
    alike = [value for value in seen if value.type == old.type and value is not old]
    if (new := pick(rng, alike if alike and rng.random() < 0.9 else values(program))) is None:
        return None
    op.operands[index] = new
    return f"operand {index} of {op.name} is another value"


def add(program: Program, rng: Random) -> str | None:
    if (place := pick(rng, inner_places(program))) is None:
        return None
    if (new := pick(rng, visible(program, place.op))) is None:
        return None
    place.op.operands.insert(rng.randint(0, len(place.op.operands)), new)
    return f"an operand more for {place.op.name}"


def swap_results(program: Program, rng: Random) -> str | None:
    """Let the readers of one result read a different result."""
    if (op := pick(rng, [op for op in operations(program) if len(op.results) > 1])) is None:
        return None
    i, j = rng.sample(range(len(op.results)), 2)
    if rng.random() < 0.5:
        replace_uses(program, op.results[i], op.results[j])
        return f"result {j} of {op.name} in place of {i}"
    for reader in operations(program):
        other = {op.results[i]: op.results[j], op.results[j]: op.results[i]}
        reader.operands = [other.get(value, value) for value in reader.operands]
    return f"results {i} and {j} of {op.name} swapped"


def add_result(program: Program, rng: Random) -> str | None:
    if (op := pick(rng, operations(program))) is None:
        return None
    types = [value.type for value in values(program)] or ["i32"]
    op.results.insert(rng.randint(0, len(op.results)), Value(rng.choice(types)))
    return f"a result more of {op.name}"


def drop_result(program: Program, rng: Random) -> str | None:
    if (op := pick(rng, [op for op in operations(program) if op.results])) is None:
        return None
    gone = op.results.pop(rng.randrange(len(op.results)))
    alike = [value for value in values(program) if value.type == gone.type]
    if alike:
        replace_uses(program, gone, rng.choice(alike))
    return f"a result of {op.name} dropped"


def _other_type(type_: str, rng: Random, present: list[str]) -> str:
    plain = [f"tensor<{type_}>", f"tensor<{type_}>", f"tuple<{type_}>", *TYPES, "tensor<*xf32>", "!foo.type<1>"]
    encoded = [type_[:-1] + ', "encoding">', type_.partition(",")[0] + ">"] if type_.startswith("tensor") else []
    return rng.choice(
        [tweak(type_, rng) or "i32", tweak(type_, rng) or "i32", rng.choice(present), *encoded, rng.choice(plain)]
    )


def retype(program: Program, rng: Random) -> str | None:
    """Change the type of one value."""
    if (value := pick(rng, values(program))) is None:
        return None
    before, value.type = value.type, _other_type(value.type, rng, [entry.type for entry in values(program)])
    return f"type {before} of one value is now {value.type}"


def retype_all(program: Program, rng: Random) -> str | None:
    """Replace one type by another type everywhere, including attributes."""
    present = sorted({value.type for value in values(program)})
    if (before := pick(rng, present)) is None:
        return None
    after = _other_type(before, rng, present)
    for value in values(program):
        value.type = value.type.replace(before, after)
    for op in program.module.walk():
        for each in (op.properties, op.attributes):
            each.update((key, text.replace(before, after)) for key, text in each.items())
    return f"type {before} is now {after}"


EDITS: Edits = {
    "operand swap": swap,
    "operand drop": drop,
    "operand duplicate": duplicate,
    "operand replace": replace,
    "operand add": add,
    "result swap": swap_results,
    "result add": add_result,
    "result drop": drop_result,
    "type of one": retype,
    "type everywhere": retype_all,
}
