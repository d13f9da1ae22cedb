"""Edits of the text in any form: tokens, bracketed lists, lines, comments, the resource section.

Each maps (text, rng) to (description, new text), or to None if it finds nothing to change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from ..balance import end_of, pieces
from .literals import tweak
from .sites import pick

TextEdit = Callable[[str, Random], tuple[str, str] | None]
TextEdits = dict[str, TextEdit]

TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|::|[%^@][\w$.-]+(?:#\d+)?|[#!][\w$.-]+|0x[0-9A-Fa-f]+|[\w$][\w$.]*(?:[eE][-+]\d+)?|\S'
)
_KINDS = ("%", "^", "@", "#", "!", '"')


def tokens(text: str) -> list[re.Match[str]]:
    return list(TOKEN.finditer(text))


def kind_of(token: str) -> str:
    """Return the kind of a token; tokens of one kind may replace each other."""
    if token[0] in _KINDS:
        return token[0]
    return "number" if token[0].isdigit() else "word" if token[0].isalpha() else token


def cut(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def drop_token(text: str, rng: Random) -> tuple[str, str]:
    match = rng.choice(tokens(text))
    return f"'{match[0]}' dropped", cut(text, *match.span(), "")


def double_token(text: str, rng: Random) -> tuple[str, str]:
    match = rng.choice(tokens(text))
    return f"'{match[0]}' doubled", cut(text, *match.span(), f"{match[0]} {match[0]}")


def swap_tokens(text: str, rng: Random) -> tuple[str, str] | None:
    actual = tokens(text)
    if len(actual) < 2:
        return None
    index = rng.randrange(len(actual) - 1)
    first, other = actual[index], actual[index + 1]
    swapped = other[0] + text[first.end() : other.start()] + first[0]
    return f"'{first[0]}' and '{other[0]}' swapped", cut(text, first.start(), other.end(), swapped)


def replace_token(text: str, rng: Random) -> tuple[str, str] | None:
    """Replace a token by a different token of the same kind, such as a value by a value."""
    actual = tokens(text)
    match = rng.choice(actual)
    alike = sorted({entry[0] for entry in actual if kind_of(entry[0]) == kind_of(match[0])} - {match[0]})
    if (new := pick(rng, alike)) is None:
        return None
    return f"'{match[0]}' is now '{new}'", cut(text, *match.span(), new)


def replace_name(text: str, rng: Random) -> tuple[str, str] | None:
    """Replace one occurrence of a value, symbol, alias or label by another name."""
    matches = [match for match in tokens(text) if match[0][0] in "%@#!^"]
    if (match := pick(rng, matches)) is None:
        return None
    alike = sorted({entry[0] for entry in matches if entry[0][0] == match[0][0]} - {match[0]})
    new = rng.choice([*alike, match[0] + "_0", match[0].partition("#")[0] or match[0]])
    return f"'{match[0]}' is now '{new}'", cut(text, *match.span(), new)


def change_result_number(text: str, rng: Random) -> tuple[str, str] | None:
    items = list(re.finditer(r"(%[\w$.-]+)(?:#(\d+)|:(\d+)(?= =))?", text))
    if (match := pick(rng, items)) is None:
        return None
    new = match[1] + rng.choice(["#0", "#1", "#2", ":1", ":2", ":3", ""])
    return f"'{match[0]}' is now '{new}'", cut(text, *match.span(), new)


def change_literal(text: str, rng: Random) -> tuple[str, str] | None:
    lines = text.splitlines(keepends=True)
    index = rng.randrange(len(lines))
    if (changed := tweak(lines[index], rng)) is None:
        return None
    before, lines[index] = lines[index].strip(), changed
    return f"'{before}' is now '{changed.strip()}'", "".join(lines)


def _groups(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each bracketed part, ignoring strings and comments."""
    opening = [match.end() for match in tokens(text) if match[0] in ("(", "[", "{", "<")]
    return [(start, end_of(text, start, "")) for start in opening]


def change_list(text: str, rng: Random) -> tuple[str, str] | None:
    """Edit the items between two brackets."""
    matches = [(start, end) for start, end in _groups(text) if end - start < 2000]
    if (group := pick(rng, matches)) is None:
        return None
    items = pieces(text[group[0] : group[1]])
    kind = rng.choice("drop double swap empty trailing leading reverse rotate nothing".split())
    if not items and kind not in ("trailing", "leading"):
        return None
    index = rng.randrange(len(items)) if items else 0
    match kind:
        case "drop":
            del items[index]
        case "double":
            items.insert(index, items[index])
        case "swap":
            rng.shuffle(items)
        case "empty":
            items = []
        case "trailing":
            items.append("")
        case "leading":
            items.insert(0, "")
        case "reverse":
            items.reverse()
        case "rotate":
            items = items[1:] + items[:1]
        case _:
            return "a bracket pair dropped", cut(text, group[0] - 1, group[1] + 1, text[group[0] : group[1]])
    return f"{kind} in a list", cut(text, *group, ", ".join(items))


def change_lines(text: str, rng: Random) -> tuple[str, str]:
    lines = text.splitlines(keepends=True)
    index, kind = rng.randrange(len(lines)), rng.choice("drop double swap move".split())
    line = lines[index].strip()
    match kind:
        case "drop":
            del lines[index]
        case "double":
            lines.insert(index, lines[index])
        case "swap":
            lines[index - 1], lines[index] = lines[index], lines[index - 1]
        case _:
            lines.insert(rng.randrange(len(lines)), lines.pop(index))
    return f"line {kind}: {line}", "".join(lines)


def change_space(text: str, rng: Random) -> tuple[str, str]:
    """Insert comments or white space, mostly where they mean nothing."""
    match = rng.choice(tokens(text))
    new = rng.choice(
        [" ", "\n", "\t", " // comment\n", "//\n", "\r\n", " // }\n", "\f", "\v", "\u00a0", "\x00", ' // "\n', "/**/"]
    )
    return f"{new!r} before '{match[0]}'", cut(text, match.start(), match.start(), new)


def change_string(text: str, rng: Random) -> tuple[str, str] | None:
    matches = [match for match in tokens(text) if match[0][0] == '"' or match[0].startswith('@"')]
    if (match := pick(rng, matches)) is None:
        return None
    inside = match[0].partition('"')[2].rstrip('"')
    at = rng.randint(0, len(inside))
    letter = inside[at : at + 1]
    spelt = "".join(f"\\{byte:02x}" for byte in letter.encode())
    new = rng.choice([spelt, spelt.upper(), "\\" + letter, "\\n" + letter, "\\t", "\\0", "\\00", "\u00fc", "\\xff", ""])
    return f"{match[0]}: {letter!r} is now {new!r}", cut(
        text, match.end() - 1 - len(inside) + at, match.end() - 1 - len(inside) + at + len(letter), new
    )


def change_around(text: str, rng: Random) -> tuple[str, str]:
    """Add a second module, an enclosing module, or text after the end."""
    kind = rng.choice("twice around behind before end unwrapped resources".split())
    match kind:
        case "twice":
            return kind, text + text
        case "around":
            return kind, f"module {{\n{text}\n}}"
        case "behind":
            behind = (
                '"foo.behind"() : () -> ()',
                "}",
                "module {}",
                "func.func @behind() { return }",
                "#a = 1 : i32",
                "]",
                '"',
            )
            return kind, text + rng.choice(behind) + "\n"
        case "before":
            return kind, rng.choice(
                ['"foo.before"() : () -> ()', "#a = 1 : i32", "\ufeff", "// -----", "%0 = "]
            ) + "\n" + text
        case "end":
            return kind, text[: -rng.randint(1, min(40, len(text)))]
        case "unwrapped":
            start, end = text.find("{\n") + 1, text.rfind("}")
            return kind, text[start:end]
        case _:
            entry = (
                rng.choice(["weights", "bias", "blob"])
                + ': "0x04000000'
                + rng.choice(["0000803F", "0000803F00000000", ""])
                + '"'
            )
            return kind, text + "\n{-#\n  dialect_resources: {\n    builtin: {\n      " + entry + "\n    }\n  }\n#-}\n"


def change_locations(text: str, rng: Random) -> tuple[str, str] | None:
    items = list(re.finditer(r" loc\(", text))
    if not items or rng.random() < 0.3:
        ends = [match.end() for match in re.finditer(r"(?m)(?<=\w|>|\))$", text)]
        if (at := pick(rng, ends)) is None:
            return None
        new = rng.choice(
            [
                ' loc("a")',
                " loc(unknown)",
                ' loc("a":1:2)',
                ' loc(fused["a", "b"])',
                ' loc(callsite("a" at "b"))',
                " loc(#loc)",
                ' loc(fused<1 : i32>["a"])',
                ' loc("f.py":1:2 to :3)',
            ]
        )
        return f"{new} put in", cut(text, at, at, new)
    match = rng.choice(items)
    end = end_of(text, match.end(), ")") + 1
    new = rng.choice(["", ' loc("other")', text[match.start() : end] * 2, " loc()"])
    return f"{text[match.start() : end]} is now {new}", cut(text, match.start(), end, new)


EDITS: TextEdits = {
    "token drop": drop_token,
    "token double": double_token,
    "token swap": swap_tokens,
    "token replace": replace_token,
    "name replace": replace_name,
    "result number": change_result_number,
    "literal": change_literal,
    "list": change_list,
    "lines": change_lines,
    "space": change_space,
    "string": change_string,
    "around": change_around,
    "locations": change_locations,
}
