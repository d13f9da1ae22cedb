"""Edits of functions: names, visibility, order, attributes of positions, calls and callees."""

from __future__ import annotations

from random import Random

from ..balance import pieces
from ..tree import UNIT, Block, Operation, Program, Value
from ..writing import dictionary_text
from .attributes import KEYS, a_value
from .sites import Edits, Place, copied, inner_places, operations, pick, places, replace_uses, unquoted, visible

POSITIONS = {"arg_attrs": 0, "res_attrs": 1}


def name_of(function: Operation) -> str:
    return unquoted(function.properties.get("sym_name", '""'))


def _calls(program: Program) -> list[Operation]:
    return [op for op in operations(program) if op.name == "func.call"]


def _tops(program: Program) -> list[Place]:
    return [place for place in places(program) if place.block is program.body]


def drop(program: Program, rng: Random) -> str | None:
    if (place := pick(rng, _tops(program))) is None:
        return None
    program.body.operations.remove(place.op)
    return f"{place.op.name} at the top level dropped"


def duplicate(program: Program, rng: Random) -> str | None:
    if (place := pick(rng, _tops(program))) is None:
        return None
    copy = copied(place.op)
    if rng.random() < 0.8:
        copy.properties["sym_name"] = f'"{name_of(copy)}_copy"'
        copy.properties["sym_visibility"] = rng.choice(['"private"', '"private"', '"public"'])
    program.body.operations.insert(rng.randint(0, len(program.body.operations)), copy)
    return f"{place.op.name} at the top level doubled"


def rename(program: Program, rng: Random) -> str | None:
    """Rename a function, with or without its callers."""
    if (function := pick(rng, program.functions())) is None:
        return None
    old = name_of(function)
    new = rng.choice([old + "_0", "main", "other", name_of(rng.choice(program.functions())), "f g", old.upper()])
    function.properties["sym_name"] = f'"{new}"'
    if rng.random() < 0.7:
        for call in _calls(program):
            if unquoted(call.properties.get("callee", "")) == old:
                call.properties["callee"] = f'@"{new}"'
    return f"@{old} is now @{new}"


def reorder(program: Program, rng: Random) -> str | None:
    rng.shuffle(program.body.operations)
    return "top level in another order"


def visibility(program: Program, rng: Random) -> str | None:
    if (function := pick(rng, program.functions())) is None:
        return None
    new = rng.choice(['"private"', '"public"', '"nested"', None, '"odd"', UNIT])
    function.properties.pop("sym_visibility", None)
    if new is not None:
        function.properties["sym_visibility"] = new
    return f"visibility of @{name_of(function)} is now {new}"


def callee(program: Program, rng: Random) -> str | None:
    call, function = pick(rng, _calls(program)), pick(rng, program.functions())
    if call is None or function is None:
        return None
    target = name_of(function)
    call.properties["callee"] = rng.choice(
        [f"@{target}", f'@"{target}"', "@nothing", f"@{target}::@inner", f'"{target}"']
    )
    return f"a call of {call.properties['callee']}"


def position_attributes(program: Program, rng: Random) -> str | None:
    """Edit the attributes of an argument or result of a function or call."""
    ops = [op for op in operations(program) if op.name in ("func.func", "func.call")]
    if (op := pick(rng, ops)) is None:
        return None
    name = rng.choice(list(POSITIONS))
    listed = _listed(op, name)
    kind = rng.choice(["add", "drop", "swap", "empty", "none", "short", "long"])
    match kind:
        case "add" if listed:
            listed[rng.randrange(len(listed))][rng.choice(KEYS)] = a_value(program, rng)
        case "drop" if (owner := pick(rng, [item for item in listed if item])) is not None:
            del owner[rng.choice(list(owner))]
        case "swap":
            rng.shuffle(listed)
        case "empty":
            listed = [dict[str, str]() for _ in listed]
        case "short":
            listed = listed[:-1]
        case "long":
            listed.append({})
        case _:
            op.properties.pop(name, None)
            return f"{name} of {op.name} dropped"
    op.properties[name] = f"[{', '.join(map(dictionary_text, listed))}]"
    return f"{name} of {op.name}: {kind}"


def _listed(op: Operation, name: str) -> list[dict[str, str]]:
    """Return one dictionary for each position."""
    count = (
        len(op.regions[0][0].arguments) if op.name == "func.func" and op.regions and op.regions[0] else len(op.operands)
    )
    if name == "res_attrs":
        type_ = op.properties.get("function_type", "() -> ()").rpartition("->")[2].strip()
        count = len(pieces(type_.strip("()"))) if op.name == "func.func" else len(op.results)
    present = pieces(op.properties.get(name, "[]")[1:-1])
    dicts = [dict(_entry(piece) for piece in pieces(text.strip()[1:-1])) for text in present]
    return dicts or [{} for _ in range(count)]


def _entry(text: str) -> tuple[str, str]:
    key, equal, value = text.partition("=")
    return key.strip(), value.strip() if equal else UNIT


def body(program: Program, rng: Random) -> str | None:
    """Remove the body of a function, or replace it by the body of another function."""
    if (function := pick(rng, program.functions())) is None:
        return None
    other = copied(rng.choice(program.functions()))
    function.regions = [[]] if rng.random() < 0.4 else other.regions
    return f"body of @{name_of(function)} replaced"


def change_one_copy(program: Program, rng: Random) -> str | None:
    """Copy a function, change the name of one operation in the copy, and let one call refer to it."""
    if (call := pick(rng, _calls(program))) is None:
        return None
    target = unquoted(call.properties.get("callee", ""))
    if (function := pick(rng, [actual for actual in program.functions() if name_of(actual) == target])) is None:
        return None
    copy = copied(function)
    copy.properties |= {"sym_name": f'"{target}_copy"', "sym_visibility": '"private"'}
    inside = [op for op in copy.walk() if op.name.startswith(("stablehlo.", "foo."))]
    if inside and rng.random() < 0.7:
        op = rng.choice(inside)
        op.attributes[rng.choice(KEYS)] = a_value(program, rng)
    call.properties["callee"] = f'@"{target}_copy"'
    program.body.operations.insert(rng.randint(0, len(program.body.operations)), copy)
    return f"a call of a copy of @{target}"


def add_call(program: Program, rng: Random) -> str | None:
    """Add a call of any function, with values of the right types if there are any."""
    functions = [actual for actual in program.functions() if actual.regions and actual.regions[0]]
    if (function := pick(rng, functions)) is None or (place := pick(rng, inner_places(program))) is None:
        return None
    seen, call = visible(program, place.op), Operation("func.call")
    for argument in function.regions[0][0].arguments:
        alike = [value for value in seen if value.type == argument.type] or seen
        call.operands.append(rng.choice(alike) if alike else argument)
    ends = [op for op in function.regions[0][-1].operations if op.name == "func.return"]
    call.results = [Value(value.type) for value in (ends[-1].operands if ends else [])]
    call.properties = {"callee": f'@"{name_of(function)}"'}
    place.block.operations.insert(place.at, call)
    if call.results and rng.random() < 0.5:
        for value in seen:
            if value.type == call.results[0].type:
                place.op.operands = [call.results[0] if operand is value else operand for operand in place.op.operands]
    return f"a call of @{name_of(function)} added"


def wrap_module(program: Program, rng: Random) -> str | None:
    """Move top-level operations into a module of their own."""
    listed = program.body.operations
    if not listed:
        return None
    start = rng.randrange(len(listed))
    end = rng.randint(start + 1, len(listed))
    inner = Operation("builtin.module", regions=[[Block([], listed[start:end])]])
    if rng.random() < 0.5:
        inner.properties["sym_name"] = '"inner"'
    listed[start:end] = [inner]
    return f"{end - start} operations in a module of their own"


def to_top_level(program: Program, rng: Random) -> str | None:
    if (place := pick(rng, inner_places(program))) is None:
        return None
    place.block.operations.remove(place.op)
    program.body.operations.insert(rng.randint(0, len(program.body.operations)), place.op)
    for result in place.op.results:
        replace_uses(program, result, rng.choice(place.op.operands or [result]))
    return f"{place.op.name} moved to the top level"


EDITS: Edits = {
    "top level drop": drop,
    "top level duplicate": duplicate,
    "function rename": rename,
    "top level order": reorder,
    "function visibility": visibility,
    "function callee": callee,
    "function positions": position_attributes,
    "function body": body,
    "function copy": change_one_copy,
    "function call": add_call,
    "module wrap": wrap_module,
    "operation to top level": to_top_level,
}
