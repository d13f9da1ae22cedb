"""No reference for comparison runs XLA without fusion, which gives wrong numbers (docs/bits.md)."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The page that says why, and this file.
EXCEPT = ("docs/bits.md", "docs/measured/bits.md", "test/unit/test_oracles.py")
SUFFIXES = (".py", ".md", ".toml", "")
FLAG = re.compile(r"xla_disable_hlo_passes\W+[\w,-]*\bfusion\b")
# In a list of passes, or alone.
NAME = re.compile(r"(.*,)?fusion(,.*)?")


def uses(text: str, is_python: bool) -> list[int]:
    """Return the lines that disable fusion: by the flag in any text, or by the name of the pass in a Python string."""
    matches = {text.count("\n", 0, match.start()) + 1 for match in FLAG.finditer(text)}
    if is_python and "fusion" in text:
        strings = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
        matches |= {node.lineno for node in strings if isinstance(node.value, str) and NAME.fullmatch(node.value)}
    return sorted(matches)


def files() -> Iterator[Path]:
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if not name.startswith(".") and name not in ("build", "typings")]
        yield from (Path(folder, name) for name in names if Path(name).suffix in SUFFIXES)


def test_fusion_is_never_disabled() -> None:
    named = {path.relative_to(ROOT).as_posix(): path for path in files()}
    assert len(named) > 100
    assert {
        name: lines
        for name, path in named.items()
        if name not in EXCEPT and (lines := uses(path.read_text(errors="replace"), path.suffix == ".py"))
    } == {}


@pytest.mark.parametrize(
    ("text", "is_python"),
    [
        ("x\nXLA_FLAGS=--xla_disable_hlo_passes=fusion run", False),
        ('\ncompile({"xla_disable_hlo_passes": "cse,fusion"})', True),
        ('\ncompile_without(lowered, "fusion")', True),
        ('\nPASSES = "algsimp,fusion"', True),
    ],
)
def test_disabled_fusion_is_detected(text: str, is_python: bool) -> None:
    assert uses(text, is_python) == [2]


@pytest.mark.parametrize(
    "text", ['WITHOUT = "cse_barrier_expander"', 'from x import fusion\nPATH = "rules/fusion.py"', "fusion = 1"]
)
def test_similar_words_are_accepted(text: str) -> None:
    assert uses(text, True) == []
