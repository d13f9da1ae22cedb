"""The work, in counted look-ups, grows linearly with the step; `benchmarks/compile_time/growth.py` measures seconds."""

from __future__ import annotations

import operator
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from recompute import planning
from recompute.analysis.request import value_names
from recompute.analysis.step import order
from recompute.analysis.step.order import Order
from recompute.mlir_io.parser import parse_module
from recompute.options.selection import Selection
from recompute.planning.by_segment.batches import MAX_BATCH_CANDIDATES
from recompute.rewriting.mark import mark
from recompute.test.benchmark_scripts import script
from recompute.transforms.clone import clone

pytestmark = pytest.mark.slow

PLANNING = str(Path(planning.__path__[0]))
FACTOR = 4
# A little above the factor: the ends of a step are not like its middle.
SLACK = 1.15


STEPS = script("compile_time.long_steps")
# So many blocks that each segment has more parts than are looked at.
LARGE_SEGMENTS = STEPS.SEGMENTS * (MAX_BATCH_CANDIDATES + 8)


def step_of(kind: str, blocks: int) -> tuple[ModuleOp, Selection]:
    chosen = STEPS.KINDS[kind]
    return parse_module(STEPS.long_step(chosen, blocks), "step.mlir"), chosen.select(blocks)


@pytest.mark.parametrize("kind", STEPS.KINDS)
def test_every_kind_of_step_has_something_to_recompute(kind: str) -> None:
    module, selection = step_of(kind, 12)
    mark(module, selection)
    assert len(clone(module).groups) >= 2


def look_ups(monkeypatch: pytest.MonkeyPatch, kind: str, blocks: int) -> dict[str, int]:
    """Count the work of mark and clone on a step of so many blocks.

    Returns:
        By name: owners looked up, operands read, names made, values compared (as a list search does), and lines of the
        planner that ran, each loop iteration counted.
    """
    module, selection = step_of(kind, blocks)
    counted = Counter[str]()

    def counting(change: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted_call(*arguments: Any) -> Any:
            counted[change] += 1
            return function(*arguments)

        return counted_call

    def line(frame: FrameType, event: str, argument: object) -> Any:
        counted["lines"] += event == "line"
        return line

    def call(frame: FrameType, event: str, argument: object) -> Any:
        return line if frame.f_code.co_filename.startswith(PLANNING) else None

    with monkeypatch.context() as patch:
        patch.setattr(SSAValue, "__eq__", counting("comparisons", operator.is_))
        patch.setattr(Order, "owner_here", counting("owners", Order.owner_here))
        patch.setattr(order, "read_values", counting("reads", order.read_values))
        patch.setattr(value_names, "names_of", counting("names", value_names.names_of))
        before = sys.gettrace()
        sys.settrace(call)
        try:
            mark(module, selection)
            clone(module)
        finally:
            sys.settrace(before)
    return dict(counted)


@pytest.mark.slow("segments", "checkpoints")
@pytest.mark.parametrize("kind", STEPS.KINDS)
def test_look_ups_grow_with_the_step(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    blocks = LARGE_SEGMENTS if kind == "segments" else 24
    small, large = (look_ups(monkeypatch, kind, count) for count in (blocks, blocks * FACTOR))
    assert small["owners"] and small["reads"] and small["lines"]
    for change, count in small.items():
        assert large[change] <= SLACK * FACTOR * count, change
