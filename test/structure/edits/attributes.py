"""Edits of attributes and properties: key, value, and the dictionary that contains them."""

from __future__ import annotations

from random import Random

from ..tree import UNIT, Operation, Program
from .literals import tweak
from .sites import Edits, operations, pick

KEYS = """
    foo.new mhlo.sharding mhlo.frontend_attributes recompute.recompute recompute.copy recompute.id op_name__ op_name
    callee sym_name sym_visibility value has_side_effect sdy.sharding xla.memory operandSegmentSizes epsilon dimension
    resultSegmentSizes call_target_name backend_config kind stablehlo.x "odd_key" _ function_type arg_attrs fastmath
    predicate indices_are_sorted result_accuracy composite_attributes is_stable sharding "recompute.quoted" "k=1"
""".split()
VALUES = """
    unit 1:i32 1:i64 -1 true "a" "b" [] {} #foo.kind<1> #foo.kind<2> i32 tensor<2xf32> @main @g 0x7F800001:f32
    0x7FC00001:f32 0x7C01:f16 -0.0:f32 0.0:f32 dense<1>:tensor<2xi32> dense<[1,1]>:tensor<2xi32> {a=1:i32} [1:i32]
    array<i64:1> array<f32:0.0> array<f32:-0.0> affine_map<(d0)->(d0)> #vhlo.type_v1<!vhlo.i32_v1> "{replicated}"
    !foo.type<"x"> 5:index dense<0x7FC00000>:tensor<1xf32> dense<0x7F800001>:tensor<1xf32> ()->() array<i32:1,1>
    #stablehlo<precision_HIGH> 1.5:bf16
""".split()

Entry = tuple[Operation, dict[str, str], str]


def dictionaries(program: Program) -> list[tuple[Operation, dict[str, str]]]:
    every = [program.module, *operations(program)]
    return [(op, each) for op in every for each in (op.properties, op.attributes)]


def entries(program: Program) -> list[Entry]:
    return [(op, each, key) for op, each in dictionaries(program) for key in each]


def a_value(program: Program, rng: Random) -> str:
    """Return a value from the table, or one that occurs in the program."""
    present = [each[key] for _, each, key in entries(program)]
    new = rng.choice(VALUES).replace("_HIGH", " HIGH").replace("unit", UNIT)
    return rng.choice([new, *present[:1], rng.choice(present)] if present else [new])


def drop(program: Program, rng: Random) -> str | None:
    if (entry := pick(rng, entries(program))) is None:
        return None
    op, each, key = entry
    del each[key]
    return f"{key} of {op.name} dropped"


def add(program: Program, rng: Random) -> str | None:
    op, each = rng.choice(dictionaries(program))
    key = rng.choice(KEYS)
    each[key] = a_value(program, rng)
    return f"{key} = {each[key]} added to {op.name}"


def rename(program: Program, rng: Random) -> str | None:
    if (entry := pick(rng, entries(program))) is None:
        return None
    op, each, key = entry
    new = rng.choice(
        [rng.choice(KEYS), rng.choice(entries(program))[2], key.strip('"') + "2", f'"{key}"'.replace('""', '"')]
    )
    each[new] = each.pop(key)
    return f"{key} of {op.name} is now {new}"


def replace(program: Program, rng: Random) -> str | None:
    if (entry := pick(rng, entries(program))) is None:
        return None
    op, each, key = entry
    each[key] = a_value(program, rng)
    return f"{key} of {op.name} is now {each[key]}"


def change(program: Program, rng: Random) -> str | None:
    """Change one literal in a value."""
    if (entry := pick(rng, [actual for actual in entries(program) if actual[1][actual[2]]])) is None:
        return None
    op, each, key = entry
    if (changed := tweak(each[key], rng)) is None:
        return None
    before, each[key] = each[key], changed
    return f"{key} of {op.name}: {before} is now {changed}"


def swap(program: Program, rng: Random) -> str | None:
    result = entries(program)
    if len(result) < 2:
        return None
    (_, first, key), (_, other, other_key) = rng.sample(result, 2)
    first[key], other[other_key] = other[other_key], first[key]
    return f"values of {key} and {other_key} swapped"


def move(program: Program, rng: Random) -> str | None:
    if (entry := pick(rng, entries(program))) is None:
        return None
    op, each, key = entry
    target, other = rng.choice(dictionaries(program))
    other[key] = each.pop(key)
    return f"{key} moved from {op.name} to {target.name}"


def copy(program: Program, rng: Random) -> str | None:
    if (entry := pick(rng, entries(program))) is None:
        return None
    op, each, key = entry
    target, other = rng.choice(dictionaries(program))
    other[key] = each[key]
    return f"{key} of {op.name} copied to {target.name}"


def change_dictionary(program: Program, rng: Random) -> str | None:
    """Turn a property into an attribute or vice versa, or make it both."""
    if (entry := pick(rng, entries(program))) is None:
        return None
    op, each, key = entry
    other = op.attributes if each is op.properties else op.properties
    other[key] = each[key]
    if rng.random() < 0.7:
        del each[key]
        return f"{key} of {op.name} is in the other dictionary"
    return f"{key} of {op.name} is in both dictionaries"


def nest(program: Program, rng: Random) -> str | None:
    if (entry := pick(rng, entries(program))) is None:
        return None
    op, each, key = entry
    value = each[key] or "unit"
    inside = value[1:-1] if value[:1] + value[-1:] in ("[]", "{}") else value
    each[key] = rng.choice(
        [f"[{value}]", f"{{a = {value}}}", f"[{value}, {value}]", inside.partition("=")[2].strip() or "unit"]
    )
    return f"{key} of {op.name} is now {each[key]}"


def reorder(program: Program, rng: Random) -> str | None:
    matches = [dictionary for dictionary in dictionaries(program) if len(dictionary[1]) > 1]
    if (entry := pick(rng, matches)) is None:
        return None
    op, each = entry
    items = list(each.items())
    rng.shuffle(items)
    each.clear()
    each.update(items)
    return f"attributes of {op.name} in another order"


EDITS: Edits = {
    "attribute drop": drop,
    "attribute add": add,
    "attribute rename": rename,
    "attribute replace": replace,
    "attribute change": change,
    "attribute swap": swap,
    "attribute move": move,
    "attribute copy": copy,
    "attribute dictionary": change_dictionary,
    "attribute nest": nest,
    "attribute order": reorder,
}
