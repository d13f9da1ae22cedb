"""Pairs of programs that differ, from an attack on the proof; the first line of each file says in what.

Each pair was proved once. Where the programs are swapped the pair is unequal too, but for the loop that may not end and
for what is hoisted: the program after may run less.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from recompute.driver.verification import verify_module
from recompute.interpreters.prove import prove
from recompute.mlir_io.parser import parse_module

FOLDER = Path(__file__).parent / "unequal"
NAMES = sorted(path.name.removesuffix(".a.mlir") for path in FOLDER.glob("*.a.mlir"))


@pytest.mark.parametrize("name", NAMES)
def test_not_proved(name: str) -> None:
    before, after = (parse_module((FOLDER / f"{name}.{side}.mlir").read_text(), name) for side in "ab")
    for module in (before, after):
        verify_module(module)
    assert prove(before, before.clone()).proved
    assert not prove(before, after).proved


def test_there_are_pairs() -> None:
    assert len(NAMES) >= 12
