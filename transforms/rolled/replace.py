"""Replace the results of a loop and erase it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from ...analysis.step.counted_loops import CountedLoop
from .builder import Builder
from .carries import Replaced


def builder_before(loop: CountedLoop) -> Builder:
    return Builder(InsertPoint.before(loop.op), loop.op.location, loop.block.args[loop.counter].type)


def replace_loop(loop: CountedLoop, values: dict[int, SSAValue], place: Builder, replaced: Replaced) -> None:
    """Redirect uses of the loop's results to `values`. The counter ends at a constant; a carry that the loop does not
    change is its initial value."""
    for result in loop.op.results:
        value = values.get(result.index)
        if value is None and loop.is_invariant(result.index):
            value = loop.op.operands[result.index]
        elif value is None and result.index == loop.counter and any(result.uses):
            value = place.number(loop.start + loop.trips)
        if value is not None:
            value.name_hint = value.name_hint or result.name_hint
            result.replace_all_uses_with(value)
            replaced[result] = value


def erase_loop(loop: CountedLoop) -> None:
    """Erase a loop and the operations that still read it, whose results are not needed."""
    _erase_readers(loop.op.results)
    loop.op.detach()
    loop.op.erase()


def _erase_readers(values: Sequence[SSAValue]) -> None:
    for value in values:
        for use in list(value.uses):
            _erase_readers(use.operation.results)
            use.operation.detach()
            use.operation.erase()
