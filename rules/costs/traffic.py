"""The bytes that one execution of an operation reads and writes, without fusion, as XLA's cost analysis counts them.

For a slice or an update, the moved elements are counted twice, the indices once, and the other elements not at all.
Views, constants and operations that forward their operands move no bytes, although XLA counts some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from ...support.diagnostics import Refusal
from ...support.operations import name_of
from ..buffers import type_bytes
from ..effects import is_constant, is_ordering
from ..facts import Effect
from ..registry import facts_of

Moved: TypeAlias = Iterable[tuple[int, Iterable[SSAValue]]]
"""Pairs of a weight and values: each access to one of the values counts with that weight."""


def traffic(op: Operation) -> int:
    """Return the number of bytes that one execution reads and writes, without the bytes of its regions.

    Raises:
        Refusal: The size of a value is unknown.
    """
    if is_free(op):
        return 0
    moved = _BY_NAME.get(name_of(op), _operands_and_results)(op)
    return sum(times * _bytes(op, value) for times, values in moved for value in values)


def is_free(op: Operation) -> bool:
    """Return whether the operation neither moves nor computes data because it is a view, a constant, a terminator or an
    ordering operation."""
    facts = facts_of(op)
    is_view_or_terminator = facts is not None and (facts.view is not None or facts.effect is Effect.TERMINATOR)
    return is_view_or_terminator or is_constant(op) or is_ordering(op)


def _operands_and_results(op: Operation) -> Moved:
    return (1, op.operands), (1, op.results)


def _results_twice(op: Operation) -> Moved:
    return ((2, op.results),)


def _dynamic_slice(op: Operation) -> Moved:
    """Count the slice twice, for its read and its write, and the first operand after the input once.

    That operand contains the start index of the first dimension, or all indices of a gather. XLA does not count the
    other start indices either.
    """
    return (2, op.results), (1, op.operands[1:2])


def _dynamic_update_slice(op: Operation) -> Moved:
    return (2, op.operands[1:2]), (1, op.operands[2:3])


def _scatter(op: Operation) -> Moved:
    inputs = len(op.results)
    return (3, op.operands[inputs + 1 :]), (1, op.operands[inputs : inputs + 1])


def _triangle(op: Operation) -> Moved:
    """Count the operand once: half of the matrix is read, and half is written."""
    return ((1, op.operands),)


_BY_NAME: Mapping[str, Callable[[Operation], Moved]] = {
    "stablehlo.slice": _results_twice,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.gather": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.scatter": _scatter,
    "stablehlo.cholesky": _triangle,
}


def _bytes(op: Operation, value: SSAValue) -> int:
    if (size := type_bytes(value.type)) is None:
        raise Refusal(op, f"the size of {value.type} is unknown, so no cost in bytes or time can be computed")
    return size
