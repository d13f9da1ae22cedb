"""Edits that preserve the meaning by a rule of the proof, so that the rules are exercised."""

from __future__ import annotations

from random import Random

from ..normal.pure import is_pure
from ..tree import Block, Operation, Program, Value
from .functions import name_of
from .sites import Edits, blocks, copied, inner_places, operations, pick, regions, replace_uses, unquoted, visible

PURE_UNARY = "stablehlo.negate stablehlo.abs stablehlo.cosine".split()


def barrier(program: Program, rng: Random) -> str | None:
    """Add a barrier over values, through which some of their readers read."""
    if (place := pick(rng, inner_places(program))) is None:
        return None
    seen = [value for value in visible(program, place.op) if value.type.startswith("tensor<")]
    if not seen:
        return None
    chosen = rng.sample(seen, min(len(seen), rng.randint(1, 3)))
    op = Operation("stablehlo.optimization_barrier", chosen, [Value(value.type) for value in chosen])
    place.block.operations.insert(place.at, op)
    for later in place.block.operations[place.at + 1 :]:
        if rng.random() < 0.6:
            other = dict(zip(chosen, op.results, strict=True))
            later.operands = [other.get(value, value) for value in later.operands]
    return f"a barrier before {place.op.name}"


def depend(program: Program, rng: Random) -> str | None:
    if (place := pick(rng, inner_places(program))) is None:
        return None
    seen = [value for value in visible(program, place.op) if value.type.startswith("tensor<")]
    if not seen:
        return None
    value, gate = rng.choice(seen), rng.choice(seen)
    token = Operation("recompute.token", [gate], [Value("!recompute.token")])
    op = Operation("recompute.depend", [value, *token.results], [Value(value.type)])
    place.block.operations[place.at : place.at] = [token, op]
    place.op.operands = [op.results[0] if operand is value else operand for operand in place.op.operands]
    return f"a token and a depend before {place.op.name}"


def dead(program: Program, rng: Random) -> str | None:
    if (place := pick(rng, inner_places(program))) is None:
        return None
    seen = [
        entry
        for entry in visible(program, place.op)
        if entry.type.startswith("tensor<") and entry.type.endswith("f32>")
    ]
    if (value := pick(rng, seen)) is None:
        return None
    place.block.operations.insert(place.at, Operation(rng.choice(PURE_UNARY), [value], [Value(value.type)]))
    return f"an unused operation before {place.op.name}"


def mark(program: Program, rng: Random) -> str | None:
    op = rng.choice([program.module, *operations(program)])
    key = rng.choice("recompute.recompute recompute.copy recompute.id recompute.phase recompute.free".split())
    op.attributes[key] = rng.choice(["true", "1 : i64", '"primal"', "0x7F800001 : f32", "#foo.kind<1>"])
    return f"{op.name} marked with {key}"


def rename_private(program: Program, rng: Random) -> str | None:
    hidden = [actual for actual in program.functions() if actual.properties.get("sym_visibility") == '"private"']
    if (function := pick(rng, hidden)) is None:
        return None
    old, new = name_of(function), f"p{rng.randrange(100)}"
    function.properties["sym_name"] = f'"{new}"'
    for call in operations(program):
        if call.name == "func.call" and unquoted(call.properties.get("callee", "")) == old:
            call.properties["callee"] = f"@{new}"
    return f"private @{old} is now @{new}"


def rename_module(program: Program, rng: Random) -> str | None:
    program.module.properties["sym_name"] = rng.choice(['"a"', '"jit_step"', '"odd name"'])
    return "the module has another name"


def unused_private(program: Program, rng: Random) -> str | None:
    if (function := pick(rng, program.functions())) is None:
        return None
    copy = copied(function)
    copy.properties |= {"sym_name": '"unused"', "sym_visibility": '"private"'}
    program.body.operations.insert(rng.randint(0, len(program.body.operations)), copy)
    return "a private function without calls"


def say_public(program: Program, rng: Random) -> str | None:
    shown = [actual for actual in program.functions() if "sym_visibility" not in actual.properties]
    if (function := pick(rng, shown)) is None:
        return None
    function.properties["sym_visibility"] = '"public"'
    return f"@{name_of(function)} says that it is public"


def outline(program: Program, rng: Random) -> str | None:
    """Replace an operation by a call of a private function that contains it."""
    places = [place for place in inner_places(program) if place.op.results and not place.op.regions]
    if (place := pick(rng, [entry for entry in places if entry.op is not entry.block.operations[-1]])) is None:
        return None
    inner = copied(place.op)
    arguments = [Value(value.type) for value in place.op.operands]
    inner.operands = list(arguments)
    last = Operation("func.return", list(inner.results))
    taken, given = (", ".join(value.type for value in each) for each in (arguments, inner.results))
    function = Operation("func.func", regions=[[Block(arguments, [inner, last])]])
    name = f"outlined_{len(program.functions())}"
    function.properties = {
        "sym_name": f'"{name}"',
        "sym_visibility": '"private"',
        "function_type": f"({taken}) -> ({given})",
    }
    program.body.operations.append(function)
    call = Operation("func.call", list(place.op.operands), [Value(value.type) for value in place.op.results])
    call.properties["callee"] = f"@{name}"
    place.block.operations[place.at] = call
    for old, new in zip(place.op.results, call.results, strict=True):
        replace_uses(program, old, new)
    return f"{place.op.name} in a function of its own"


def group(program: Program, rng: Random) -> str | None:
    """Move an operation into a segment or gradient region."""
    if (place := pick(rng, [inner_place for inner_place in inner_places(program) if inner_place.op.results])) is None:
        return None
    around = Operation(rng.choice(["recompute.segment", "recompute.gradient"]))
    around.results = [Value(value.type) for value in place.op.results]
    for old, new in zip(place.op.results, around.results, strict=True):
        replace_uses(program, old, new)
    around.regions = [[Block([], [place.op, Operation("recompute.yield", list(place.op.results))])]]
    place.block.operations[place.at] = around
    return f"{place.op.name} in a {around.name}"


def constant_into_regions(program: Program, rng: Random) -> str | None:
    """Duplicate a constant in a region that reads it."""
    constants = {op.results[0]: op for op in operations(program) if op.name == "stablehlo.constant" and op.results}
    matches = [
        (block, value)
        for op, index in regions(program)
        for block in op.regions[index]
        for inner in block.operations
        for value in inner.operands
        if value in constants and constants[value] not in block.operations
    ]
    if (chosen := pick(rng, matches)) is None:
        return None
    block, value = chosen
    copy = copied(constants[value])
    block.operations.insert(0, copy)
    for inner in block.operations[1:]:
        inner.operands = [copy.results[0] if operand is value else operand for operand in inner.operands]
    return "a constant made again inside a region"


def shuffle(program: Program, rng: Random) -> str | None:
    """Reorder the operations of a block as far as their operands allow."""
    if (
        block := pick(
            rng, [actual for actual in blocks(program) if len(actual.operations) > 2 and actual is not program.body]
        )
    ) is None:
        return None
    waiting, last = block.operations[:-1], block.operations[-1]
    own = {value for op in waiting for value in op.results}
    result: set[Value] = set()
    block.operations = []
    while waiting:
        ready = [
            op
            for op in waiting
            if all(value in result or value not in own for operation in op.walk() for value in operation.operands)
        ]
        # Effects stay in order.
        ready = [op for op in ready if is_pure(op) or all(map(is_pure, waiting[: waiting.index(op)]))]
        op = rng.choice(ready or waiting)
        waiting.remove(op)
        result.update(op.results)
        block.operations.append(op)
    block.operations.append(last)
    return "operations of a block in another order"


EDITS: Edits = {
    "harmless barrier": barrier,
    "harmless depend": depend,
    "harmless dead": dead,
    "harmless mark": mark,
    "harmless private name": rename_private,
    "harmless module name": rename_module,
    "harmless unused function": unused_private,
    "harmless public": say_public,
    "harmless outline": outline,
    "harmless group": group,
    "harmless constant": constant_into_regions,
    "harmless order": shuffle,
}
