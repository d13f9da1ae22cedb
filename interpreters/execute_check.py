"""Run two programs on the same inputs, compare the results bit by bit, and locate the first difference.

Results are compared as bit patterns, so NaN payloads and the sign of zero matter. If a result differs, both programs
run again and record a digest of each value that a top-level operation computes. The first difference is the first
operation of the rewritten program, in program order, with a value that the original program does not compute. A call or
loop is treated as one operation; inline both modules to look inside calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ..dialects.stablehlo.tuples import leaf_types
from ..support.diagnostics import Refusal, position_of
from ..support.operations import name_of
from .execution_monitor import ExecutionMonitor
from .executor import Executable, execute, function_named
from .inputs import check_inputs
from .kernels.arrays import Array, leaves, row_by_row


@dataclass(frozen=True)
class ExecutionDifference:
    """The first difference between the results of two programs.

    Attributes:
        result: Index of the first result that differs.
        index: Index of the first element of this result that differs.
        before: The value of this element in the original program, as text.
        after: The value of this element in the rewritten program, as text.
        elements: Number of elements of the result that differ.
        operation: First operation of the rewritten program with a value that the original program does not compute;
            None if there is none.
    """

    result: int
    index: tuple[int, ...]
    before: str
    after: str
    elements: int
    operation: Operation | None

    def __str__(self) -> str:
        place = f"result #{self.result} {list(self.index)}: before {self.before}, after {self.after}"
        count = f"{self.elements} element{'' if self.elements == 1 else 's'} differ{'s' * (self.elements == 1)}"
        if self.operation is None:
            return f"{place}; {count}; all computed values occur in both programs"
        return f"{place}; {count}; first new value: {name_of(self.operation)} at {position_of(self.operation)}"


@dataclass(frozen=True)
class Equality:
    """The result of a comparison of two programs.

    Attributes:
        results: Number of results that were compared.
        nan_results: Number of results that contain NaN. A NaN may hide a difference.
        difference: The first difference; None if all results are equal.
    """

    results: int
    nan_results: int
    difference: ExecutionDifference | None

    @property
    def equal(self) -> bool:
        return self.difference is None


def compare(
    before: ModuleOp,
    after: ModuleOp,
    inputs: Sequence[Any],
    name: str | None = None,
    monitor: ExecutionMonitor | None = None,
) -> Equality:
    """Run the function `name` of both modules on the same inputs and compare the results bit by bit.

    `monitor`: observes both runs, and may stop them.

    Raises:
        Refusal: The signatures differ, or an operation cannot be executed.
        ValueError: An input does not match the signature.
        TimeLimitReached: The monitor stops a run.
    """
    return PreparedPair.of(before, after, name, monitor).compare(inputs)


def _signature(function: FuncOp) -> list[list[str]]:
    """Return the argument types and the result types as text, with tuples in the results flattened."""
    type_ = function.function_type
    return [[str(part) for part in types] for types in (type_.inputs, leaf_types(type_.outputs))]


@dataclass(frozen=True)
class PreparedPair:
    """The compiled functions of two programs, for repeated comparisons."""

    before: Executable
    after: Executable
    monitor: ExecutionMonitor | None = None

    @classmethod
    def of(
        cls, before: ModuleOp, after: ModuleOp, name: str | None = None, monitor: ExecutionMonitor | None = None
    ) -> PreparedPair:
        """Compile the function `name` of both modules. `monitor`: observes the runs, and may stop them.

        Raises:
            Refusal: The signatures differ, or an operation cannot be executed.
        """
        first, second = function_named(before, name), function_named(after, name)
        # Types are compared as text, because an unregistered type is a different object in each module.
        if _signature(first) != _signature(second):
            types = f"{first.function_type} and {second.function_type}"
            raise Refusal(second, f"the functions have different types: {types}")
        return cls(Executable.of(first, monitor), Executable.of(second, monitor), monitor)

    def compare(self, inputs: Sequence[Any]) -> Equality:
        """Run both functions on the inputs and compare the results bit by bit.

        Raises:
            ValueError: An input does not match the signature.
            Refusal: An operation fails at run time.
            TimeLimitReached: The monitor stops a run.
        """
        first = self._run(self.before, inputs)
        second = self._run(self.after, inputs)
        nans = sum(bool(np.any(result != result)) for result in first)
        for number, (left, right) in enumerate(zip(first, second, strict=True)):
            mask = differing(left, right)
            if np.any(mask):
                operation = first_new_value(self.before.function, self.after.function, inputs)
                return Equality(len(first), nans, _difference(number, left, right, mask, operation))
        return Equality(len(first), nans, None)

    def _run(self, program: Executable, inputs: Sequence[Any]) -> tuple[Array, ...]:
        if self.monitor is not None:
            self.monitor.begin(program.function)
        return program.run(inputs)


def _difference(
    number: int, left: Array, right: Array, mask: Array, operation: Operation | None
) -> ExecutionDifference:
    places = np.argwhere(mask)
    index = tuple(int(part) for part in places[0])
    return ExecutionDifference(
        result=number,
        index=index,
        before=_text_of(left[index]),
        after=_text_of(right[index]),
        elements=len(places),
        operation=operation,
    )


def differing(left: Array, right: Array) -> Array:
    """Return a mask of the elements whose bit patterns differ. Both arrays must have the same shape and element
    type."""
    left_bytes, right_bytes = (row_by_row(array).reshape(*array.shape, 1).view(np.uint8) for array in (left, right))
    return np.any(left_bytes != right_bytes, axis=-1)


def _text_of(value: Any) -> str:
    """Return a number as text. The text of NaN and zero includes the bits, since the decimal form does not show
    them."""
    array = np.asarray(value)
    if array.dtype.kind != "c" and (np.any(array != array) or np.all(array == 0)):
        return f"{array} (0x{array.tobytes()[::-1].hex()})"
    return str(array)


def first_new_value(before: FuncOp, after: FuncOp, inputs: Sequence[Any]) -> Operation | None:
    """Return the first operation of `after` with a value that is neither an input nor computed by an operation of
    `before`, or None if there is none."""
    digests_before, digests_after = Digests(before), Digests(after)
    execute(before, inputs, digests_before)
    execute(after, inputs, digests_after)
    known = {part for digests in digests_before.of.values() for part in digests}
    known.update(digest(array) for value in check_inputs(after, inputs) for array in leaves(value) if array is not None)
    return next((op for op, digests in digests_after.of.items() if not known.issuperset(digests)), None)


class Digests:
    """An observer that records a digest of each value that a top-level operation computes."""

    def __init__(self, function: FuncOp):
        self.block = function.body.block
        self.of = dict[Operation, list[bytes]]()

    def on_results(self, op: Operation, arrays: Sequence[Any]) -> None:
        if op.parent is self.block:
            self.of[op] = [digest(array) for value in arrays for array in leaves(value) if array is not None]

    def on_yield(self, op: Operation, arrays: Sequence[Array]) -> None: ...

    def on_carry(self, op: Operation, arrays: Sequence[Array]) -> None: ...


def digest(array: Array) -> bytes:
    header = f"{array.dtype.name}{array.shape}".encode()
    return hashlib.blake2b(header + row_by_row(array).tobytes(), digest_size=16).digest()
