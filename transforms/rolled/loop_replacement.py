"""Replace a counted loop: redirect uses of its results to new values, and erase it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from ...analysis.step.counted_loops import CountedLoop
from .carries import Replaced
from .loop_builder import Builder


def used_results(loop: CountedLoop) -> set[int]:
    """Return the indices of the loop's results that have uses."""
    return {result.index for result in loop.op.results if any(result.uses)}


def replace_loop(loop: CountedLoop, values: dict[int, SSAValue], builder: Builder, replaced: Replaced) -> None:
    """Redirect uses of the loop's results to new values.

    Args:
        loop: The loop.
        values: The new values, by the index of the result. A counter without an entry becomes a constant, its final
            value; an unchanged carry becomes its initial value.
        builder: The builder for the constant.
        replaced: The map to which the replacements are added.
    """
    for result in loop.op.results:
        value = values.get(result.index)
        if value is None and loop.is_invariant(result.index):
            value = loop.op.operands[result.index]
        elif value is None and result.index == loop.counter and any(result.uses):
            value = builder.integer(loop.start + loop.trips)
        if value is not None:
            value.name_hint = value.name_hint or result.name_hint
            result.replace_all_uses_with(value)
            replaced[result] = value


def erase_loop(loop: CountedLoop) -> None:
    """Erase a loop and all operations that depend on its results. The results of these operations must be dead."""
    _erase_readers(loop.op.results)
    Rewriter.erase_op(loop.op)


def _erase_readers(values: Sequence[SSAValue]) -> None:
    for value in values:
        for use in list(value.uses):
            _erase_readers(use.operation.results)
            Rewriter.erase_op(use.operation)
