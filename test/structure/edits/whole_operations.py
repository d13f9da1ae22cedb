"""Edits of whole operations: drop, duplicate, swap, move, rename, wrap."""

from __future__ import annotations

from random import Random

from ..tree import Block, Operation, Program
from .sites import Edits, Place, blocks, copied, inner_places, operations, pick, places, replace_uses, visible

KIN = [
    names.split()
    for names in (
        "stablehlo.sine stablehlo.cosine stablehlo.tanh stablehlo.exponential foo.unary chlo.erf",
        "stablehlo.add stablehlo.subtract stablehlo.multiply stablehlo.divide stablehlo.maximum foo.binary",
        "arith.addf arith.mulf arith.subf arith.maximumf",
        "arith.addi arith.muli arith.subi arith.xori",
        "stablehlo.partition_id stablehlo.replica_id",
        "stablehlo.optimization_barrier builtin.unrealized_conversion_cast foo.same",
        "func.return stablehlo.return sdy.return scf.yield foo.yield linalg.yield recompute.yield",
        "stablehlo.reduce stablehlo.map foo.reduce",
        "recompute.segment recompute.gradient foo.group scf.execute_region",
        "recompute.token recompute.depend foo.token",
        "sdy.sharding_constraint sdy.propagation_barrier stablehlo.custom_call",
    )
]


def _outside_functions(place: Place) -> bool:
    return place.op.name != "func.func"


def drop(program: Program, rng: Random) -> str | None:
    """Drop an operation; readers of its results read another value of the same type if there is one."""
    if (place := pick(rng, list(filter(_outside_functions, places(program))))) is None:
        return None
    seen = visible(program, place.op)
    del place.block.operations[place.at]
    for result in place.op.results:
        alike = [value for value in seen if value.type == result.type]
        if alike:
            replace_uses(program, result, rng.choice(alike))
    return f"{place.op.name} dropped"


def duplicate(program: Program, rng: Random) -> str | None:
    """Duplicate an operation; later readers may read the copy."""
    if (place := pick(rng, places(program))) is None:
        return None
    copy = copied(place.op)
    place.block.operations.insert(place.at + 1, copy)
    if rng.random() < 0.5:
        for old, new in zip(place.op.results, copy.results, strict=True):
            replace_uses(program, old, new)
    return f"{place.op.name} doubled"


def swap(program: Program, rng: Random) -> str | None:
    if (place := pick(rng, [place for place in places(program) if place.at])) is None:
        return None
    listed, i = place.block.operations, place.at
    listed[i - 1], listed[i] = listed[i], listed[i - 1]
    return f"{listed[i].name} and {listed[i - 1].name} swapped"


def move(program: Program, rng: Random) -> str | None:
    """Move an operation within its block."""
    if (place := pick(rng, [place for place in places(program) if len(place.block.operations) > 1])) is None:
        return None
    listed = place.block.operations
    listed.insert(rng.randrange(len(listed)), listed.pop(place.at))
    return f"{place.op.name} moved in its block"


def move_to_block(program: Program, rng: Random) -> str | None:
    """Move an operation to any block: into a region, out of one, or into another function."""
    if (place := pick(rng, places(program))) is None:
        return None
    inside = {id(block) for op in place.op.walk() for block in op.blocks()}
    if (block := pick(rng, [block for block in blocks(program) if id(block) not in inside])) is None:
        return None
    place.block.operations.remove(place.op)
    block.operations.insert(rng.randint(0, max(0, len(block.operations) - 1)), place.op)
    return f"{place.op.name} moved to another block"


def _parents(program: Program) -> dict[Block, Place]:
    return {block: place for place in places(program) for block in place.op.blocks()}


def move_out(program: Program, rng: Random) -> str | None:
    """Move an operation in front of the operation that encloses it."""
    parents = _parents(program)
    inside = [place for place in inner_places(program) if parents[place.block].op.name != "func.func"]
    if (place := pick(rng, inside)) is None:
        return None
    around = parents[place.block]
    place.block.operations.remove(place.op)
    around.block.operations.insert(around.at, place.op)
    return f"{place.op.name} moved out of {around.op.name}"


def move_in(program: Program, rng: Random) -> str | None:
    """Move an operation into the region of the next operation with a region."""
    matches = [
        (place, later)
        for place in inner_places(program)
        for later in place.block.operations[place.at + 1 :]
        if any(True for _ in later.blocks())
    ]
    if (pair := pick(rng, matches)) is None:
        return None
    place, target = pair
    place.block.operations.remove(place.op)
    rng.choice(list(target.blocks())).operations.insert(0, place.op)
    return f"{place.op.name} moved into {target.name}"


def rename(program: Program, rng: Random) -> str | None:
    if (op := pick(rng, operations(program))) is None:
        return None
    alike = [name for names in KIN if op.name in names for name in names if name != op.name]
    others = [other.name for other in operations(program)] + ["foo.unknown", op.name + "2", "foo." + op.name]
    before, op.name = op.name, rng.choice(alike if alike and rng.random() < 0.7 else others)
    return f"{before} is now {op.name}"


def wrap(program: Program, rng: Random) -> str | None:
    """Wrap an operation in the region of an unknown operation, or of an operation that only runs its region."""
    if (place := pick(rng, inner_places(program))) is None:
        return None
    around = Operation(
        rng.choice("foo.wrap foo.loop scf.execute_region recompute.segment sdy.manual_computation".split())
    )
    around.regions = [[Block(operations=[place.op])]]
    if rng.random() < 0.5 and place.op.results:
        word = {"scf.execute_region": "scf.yield", "recompute.segment": "recompute.yield"}.get(around.name, "foo.yield")
        around.results = [type(value)(value.type) for value in place.op.results]
        for old, new in zip(place.op.results, around.results, strict=True):
            replace_uses(program, old, new)
        around.regions[0][0].operations.append(Operation(word, operands=list(place.op.results)))
    place.block.operations[place.at] = around
    return f"{place.op.name} wrapped in {around.name}"


def unwrap(program: Program, rng: Random) -> str | None:
    """Replace an operation by the contents of its region."""
    if (place := pick(rng, [place for place in inner_places(program) if any(True for _ in place.op.blocks())])) is None:
        return None
    inside = [op for block in place.op.blocks() for op in block.operations]
    place.block.operations[place.at : place.at + 1] = inside
    if inside and not inside[-1].results:
        for old, new in zip(place.op.results, inside[-1].operands, strict=False):
            replace_uses(program, old, new)
        place.block.operations.remove(inside[-1])
    return f"{place.op.name} unwrapped"


EDITS: Edits = {
    "operation drop": drop,
    "operation duplicate": duplicate,
    "operation swap": swap,
    "operation move": move,
    "operation to block": move_to_block,
    "operation out": move_out,
    "operation in": move_in,
    "operation rename": rename,
    "operation wrap": wrap,
    "operation unwrap": unwrap,
}
