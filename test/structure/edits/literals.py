"""Small changes of a text that denotes a value: a number, a word, a type."""

from __future__ import annotations

import re
from random import Random

_LITERAL = re.compile(
    r'"(?:[^"\\]|\\.)*"|0x[0-9A-Fa-f]+|-?\d+\.\d*(?:[eE][-+]?\d+)?|(?<![\w.#%!@^$-])-?\d+(?![\w.])|\b(?:true|false|unit)\b'
    r"|\b(?:[su]?i\d+|bf16|f16|f32|f64|index|f8E\w+|tf32|none)\b|(?<=[<x])\d+(?=x)|(?<=[<x])\?(?=x)|@[\w$.-]+"
)
NUMBERS = "0 1 -1 2 3 7 255 256 127 -128 2147483647 -2147483648 4294967295 9223372036854775807".split()
FLOATS = "0.0 -0.0 1.0 1.000000e+00 1.0e-45 1.0e40 2.5 0.1 16777217.0".split()
HEXES = "0x7FC00000 0x7F800001 0xFFC00000 0x7F800000 0x80000000 0x7C01 0x7E00 0x7F 0x0 0x7FF0000000000001 0x01".split()
TYPES = "i1 i4 i8 i32 i64 ui8 ui32 si32 f16 bf16 f32 f64 index f8E4M3FN f8E5M2 f8E4M3 tf32 none".split()


def tweak(text: str, rng: Random) -> str | None:
    """Return the text with one of its literals changed, or None if it has none."""
    items = list(_LITERAL.finditer(text))
    if not items:
        return None
    match = rng.choice(items)
    return text[: match.start()] + _other(match[0], rng) + text[match.end() :]


def _other(word: str, rng: Random) -> str:
    if word.startswith('"'):
        return _other_string(word, rng)
    if word.startswith("0x"):
        return rng.choice(
            [
                _last_digit(word, rng),
                _other_nan(word),
                _other_nan(word),
                word.lower(),
                word.upper().replace("0X", "0x"),
                *HEXES,
            ]
        )
    if word in ("true", "false", "unit"):
        return rng.choice(["true", "false", "unit", "1 : i1", "0", "1"])
    if word.startswith("@"):
        return rng.choice([f'@"{word[1:]}"', word + "_0", "@main", word + "::@inner"])
    if word == "?" or re.fullmatch(r"\d+", word):
        return rng.choice(
            [str(int(word.replace("?", "0")) + 1), *NUMBERS, "?", "00" + word, hex(int("0" + word.replace("?", "")))]
        )
    if re.fullmatch(r"-?\d+", word):
        return rng.choice([str(int(word) + 1), str(-int(word)), word + ".0", *NUMBERS])
    if "." in word:
        return rng.choice([word + "1", word.lstrip("-"), "-" + word.lstrip("-"), *FLOATS, *HEXES])
    return rng.choice(TYPES)


def _other_string(word: str, rng: Random) -> str:
    inside = word[1:-1]
    changed = [
        inside + "x",
        inside[:-1],
        inside.upper(),
        inside + "\\00",
        "\\41" + inside,
        inside + "\\22",
        inside + " ",
        "",
    ]
    changed += [inside.replace("a", "\\61"), inside + "\\n", inside + "\u00e9", inside + "{", inside + "//"]
    return f'"{rng.choice(changed)}"'


_QUIET = {2: 1 << 2, 4: 1 << 6, 8: 1 << 22, 16: 1 << 51}
"""By the number of digits: the bit that makes a NaN a quiet one (of bf16, where f16 has another one)."""


def _other_nan(word: str) -> str:
    digits = len(word) - 2
    return f"0x{int(word, 16) ^ _QUIET.get(digits, 1):0{digits}X}"


def _last_digit(word: str, rng: Random) -> str:
    return word[:-1] + rng.choice("0123456789ABCDEF")
