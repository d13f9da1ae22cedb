"""Pairs of different programs from an attack on the proof, which once proved each equal; the first line of each file
names the difference.

The swapped pairs are unequal too, except the loop that may not end and the hoisted operations: there the second program
may run less.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import prove
from recompute.support.diagnostics import Refusal

FOLDER = Path(__file__).parent / "unequal"
INVALID = {"counter_compared_as_unsigned": "C4: compare_type is UNSIGNED"}
"""Pairs whose second program the verifier refuses, with its words; the proof must not rely on that."""
NAMES = sorted(path.name.removesuffix(".a.mlir") for path in FOLDER.glob("*.a.mlir"))


@pytest.mark.parametrize("name", NAMES)
def test_recorded_unequal_pairs_are_not_proved(name: str) -> None:
    before, after = (parse_module((FOLDER / f"{name}.{side}.mlir").read_text(), name) for side in "ab")
    verify_module(before)
    if name in INVALID:
        with pytest.raises(Refusal, match=INVALID[name]):
            verify_module(after)
    else:
        verify_module(after)
    assert prove(before, before.clone()).proved
    assert not prove(before, after).proved


def test_pairs_are_found() -> None:
    assert len(NAMES) >= 12
