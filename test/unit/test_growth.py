"""Work grows in proportion to the step. Seconds are for `benchmarks/growth.py`; here look-ups are counted."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from recompute.analysis import step
from recompute.analysis.copies.stages import PARTS
from recompute.analysis.order import Order
from recompute.analysis.selection import naming
from recompute.analysis.selection.selection import Selection
from recompute.dialects.parser import parse_module
from recompute.test.benchmark_scripts import script
from recompute.transforms.clone import clone
from recompute.transforms.mark import mark

FACTOR = 4
# A little above the factor: the ends of a step are not like its middle.
SLACK = 1.15


STEPS = script("long_steps")
# So many blocks that each segment has more parts than are looked at.
LARGE_SEGMENTS = STEPS.SEGMENTS * (PARTS + 8)


def step_of(kind: str, blocks: int) -> tuple[ModuleOp, Selection]:
    chosen = STEPS.KINDS[kind]
    return parse_module(STEPS.long_step(chosen, blocks), "step.mlir"), chosen.select(blocks)


@pytest.mark.parametrize("kind", STEPS.KINDS)
def test_every_kind_of_step_has_something_to_recompute(kind: str) -> None:
    module, selection = step_of(kind, 12)
    mark(module, selection)
    assert len(clone(module).units) >= 2


def look_ups(monkeypatch: pytest.MonkeyPatch, kind: str, blocks: int) -> dict[str, int]:
    """How often an owner was looked for, operands were read, names were made, and values were compared (as a search
    through a list does), in mark and clone."""
    module, selection = step_of(kind, blocks)
    counted = {"owners": 0, "reads": 0, "names": 0, "comparisons": 0}
    owner_here, read_values, names_of = Order.owner_here, step.read_values, naming.names_of

    def owner(self: Order, op: Operation) -> Operation | None:
        counted["owners"] += 1
        return owner_here(self, op)

    def reads(op: Operation) -> Any:
        counted["reads"] += 1
        return read_values(op)

    def names(op: Operation) -> tuple[str, ...]:
        counted["names"] += 1
        return names_of(op)

    def equal(self: object, other: object) -> bool:
        counted["comparisons"] += 1
        return self is other

    with monkeypatch.context() as patch:
        patch.setattr(SSAValue, "__eq__", equal)
        patch.setattr(Order, "owner_here", owner)
        for module_of in ("order", "copies.gates", "copies.plan", "copies.stages", "step"):
            patch.setattr(f"recompute.analysis.{module_of}.read_values", reads)
        patch.setattr(naming, "names_of", names)
        mark(module, selection)
        clone(module)
    return counted


@pytest.mark.parametrize("kind", STEPS.KINDS)
def test_look_ups_grow_with_the_step(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    blocks = LARGE_SEGMENTS if kind == "segments" else 24
    small, large = (look_ups(monkeypatch, kind, count) for count in (blocks, blocks * FACTOR))
    assert small["owners"] and small["reads"]
    for what, count in small.items():
        assert large[what] <= SLACK * FACTOR * count, what
