"""Edits of aliases: their names, their number, and the places and values of their definitions."""

from __future__ import annotations

import re
from random import Random

from ..balance import end_of
from .attributes import VALUES
from .sites import pick
from .text import TextEdits, cut

_DEFINITION = re.compile(r"(?m)^[ \t]*([#!][\w$.-]+)[ \t]*=[ \t]*")
_VALUE = re.compile(r'[{,]\s*(?:"[^"]*"|[\w$.-]+) = (?=[\w#!"\[{@-])')
_TYPE = re.compile(
    r"(?:(?<=[:,>] )|(?<=\())"
    r"(?=(?:tensor|memref|vector|tuple|complex)<|(?:[su]?i\d+|f32|f16|bf16|f64|index)\b|![a-z]\w*\.\w+<)"
)
_INSIDE = re.compile(r'[#!][a-z]\w*(?:\.\w+)?<(?:[^<>"\n]*(?:[<,=:] ?|\[))?(?=[\w#!"\[{@-])')
"""Inside an attribute or a type of some dialect."""
NAMES = "a b 0 1 00 map loc loc1 a$ a_b A a-b loc0 t set a1".split()
TYPES = "i32 i64 f32 tensor<4xf32> tensor<4xi32> !foo.type<1> !vhlo.i32_v1 tensor<2xf32>".split()


def definitions(text: str) -> list[tuple[str, int, int, int]]:
    """Return (name, start of the line, start of the value, end of the value) for each alias."""
    matches: list[tuple[str, int, int, int]] = []
    for match in _DEFINITION.finditer(text):
        matches.append((match[1], match.start(), match.end(), end_of(text, match.end(), "\n")))
    return matches


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def _between_operations(text: str) -> list[int]:
    """Return the starts of lines outside functions, where aliases may be defined."""
    return [
        start
        for start in _line_starts(text)
        if re.match(r"\s{0,2}(?:func|\"func|module|\"builtin|[#!]|$|sdy|\}|\{-)", text[start : start + 12])
    ]


def _a_value(rng: Random, sign: str) -> str:
    if sign == "!":
        return rng.choice(TYPES)
    places = ['loc("x")', "loc(unknown)", 'loc("f":1:2)', 'loc(callsite("a" at "b"))']
    return rng.choice([rng.choice(VALUES).replace("_HIGH", " HIGH"), rng.choice(places)])


def introduce(text: str, rng: Random) -> tuple[str, str] | None:
    """Replace a value or type in the text by a new alias, defined anywhere."""
    if (result := _introduced(text, rng)) is None:
        return None
    definition, used = result
    at = rng.choice([0, len(used), rng.choice(_between_operations(used) or [0])])
    return definition, cut(used, at, at, definition + "\n")


def introduce_first(text: str, rng: Random) -> tuple[str, str] | None:
    """Replace a value or type by a new alias, defined at the start, as MLIR requires."""
    result = _introduced(text, rng)
    return None if result is None else (result[0], f"{result[0]}\n{result[1]}")


def _introduced(text: str, rng: Random) -> tuple[str, str] | None:
    """Return the definition of a new alias, and the text that uses it."""
    sign, where = rng.choice([("#", _VALUE), ("!", _TYPE), ("", _INSIDE)])
    ends = [match.end() for match in where.finditer(text)]
    if (start := pick(rng, ends)) is None:
        return None
    sign = sign or ("!" if text[start] == "!" else "#")
    end = end_of(text, start, ",)]}>\n ")
    if sign == "#" and text.startswith(" : ", end):
        end = end_of(text, end + 3, ",)]}>\n ")
    value, name = text[start:end], sign + rng.choice(NAMES)
    used = cut(text, start, end, name)
    if sign == "!" and rng.random() < 0.4:
        used = re.sub(rf"(?<=[(:,>] ){re.escape(value)}(?![\w<>])", name, used)
    return f"{name} = {value}", used


def rename_use(text: str, rng: Random) -> tuple[str, str] | None:
    names = [name for name, *_ in definitions(text)]
    ms = [m for m in re.finditer(r"[#!][\w$-]+(?![\w$.<-])", text) if m[0] in names]
    if (match := pick(rng, ms)) is None:
        return None
    others = sorted({name for name in names if name != match[0]})
    new = rng.choice([*others, match[0][0] + rng.choice(NAMES)])
    return f"{match[0]} is now {new}", cut(text, *match.span(), new)


def redefine(text: str, rng: Random) -> tuple[str, str] | None:
    """Give an alias another value."""
    if (result := pick(rng, definitions(text))) is None:
        return None
    name, _, start, end = result
    new = _a_value(rng, name[0])
    return f"{name} is now {new}", cut(text, start, end, new)


def define_again(text: str, rng: Random) -> tuple[str, str] | None:
    """Define an alias again anywhere, with the same or another value, as an attribute or a location."""
    if (result := pick(rng, definitions(text))) is None:
        return None
    name, _, start, end = result
    value = text[start:end] if rng.random() < 0.3 else _a_value(rng, name[0])
    at = rng.choice([0, len(text), rng.choice(_between_operations(text) or [0]), rng.choice(_line_starts(text))])
    return f"{name} again, as {value}", cut(text, at, at, f"{name} = {value}\n")


def drop_definition(text: str, rng: Random) -> tuple[str, str] | None:
    if (result := pick(rng, definitions(text))) is None:
        return None
    name, line, _, end = result
    return f"definition of {name} dropped", cut(text, line, end, "")


def move_definition(text: str, rng: Random) -> tuple[str, str] | None:
    if (result := pick(rng, definitions(text))) is None:
        return None
    name, line, _, end = result
    definition, rest = text[line:end], cut(text, line, end, "")
    at = rng.choice([0, len(rest), rng.choice(_between_operations(rest) or [0]), rng.choice(_line_starts(rest))])
    return f"definition of {name} moved", cut(rest, at, at, definition + "\n")


def swap_definitions(text: str, rng: Random) -> tuple[str, str] | None:
    result = definitions(text)
    if len(result) < 2:
        return None
    (first, _, start, end), (other, _, second, last) = sorted(rng.sample(result, 2), key=lambda each: each[1])
    swapped = text[:start] + text[second:last] + text[end:second] + text[start:end] + text[last:]
    return f"{first} and {other} swapped", swapped


def chain(text: str, rng: Random) -> tuple[str, str] | None:
    """Insert an alias of an alias, or an alias within another value."""
    if (result := pick(rng, definitions(text))) is None:
        return None
    name, line, start, end = result
    new = name[0] + rng.choice([name[1:] + "x", *NAMES])
    inner = rng.choice(
        [name, f"[{name}]", f"{{a = {name}}}", f"#foo.kind<{name}>", f"tensor<2x{name}>", f"tensor<2xf32, {name}>"]
    )
    definition = f"{name} = {text[start:end]}\n{new} = {inner}\n"
    changed = cut(text, line, end + 1, definition)
    uses = [m for m in re.finditer(re.escape(name) + r"(?![\w$.<-])", changed) if m.start() > line + len(definition)]
    if (use := pick(rng, uses)) is not None:
        changed = cut(changed, *use.span(), new)
    return f"{new} is {inner}", changed


def as_location(text: str, rng: Random) -> tuple[str, str] | None:
    """Use an alias as a location."""
    names = [name for name, *_ in definitions(text) if name[0] == "#"] or ["#a"]
    ends = [match.end() for match in re.finditer(r"(?m)(?<=\w|>|\))$", text)]
    if (at := pick(rng, ends)) is None:
        return None
    name = rng.choice(names)
    return f"loc({name}) put in", cut(text, at, at, f" loc({name})")


EDITS: TextEdits = {
    "alias introduce": introduce,
    "alias first": introduce_first,
    "alias use": rename_use,
    "alias redefine": redefine,
    "alias again": define_again,
    "alias drop": drop_definition,
    "alias move": move_definition,
    "alias swap": swap_definitions,
    "alias chain": chain,
    "alias as location": as_location,
}
