"""Compare the bits that two programs compute on given inputs, and find where they first differ.

Results are compared as bit patterns: NaN payloads and the sign of zero matter. If a result differs, both programs run
again, and each value of a top-level operation is recorded by its type and a digest of its bits. The programs first
differ at the first operation of the second one, in program order, with a value that does not occur in the first: all
values before it have a counterpart. Calls and loops count as one operation; inline both modules to look inside calls.
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

from ..support.diagnostics import Refusal, position_of
from ..support.operations import name_of
from .executor import Executable, execute, function_named
from .kernels.arrays import Array, leaves, row_by_row
from .terms import leaf_types


@dataclass(frozen=True)
class ExecutionDifference:
    """The first result with different bits, its first such element, and the first operation that differs."""

    result: int
    index: tuple[int, ...]
    before: str
    after: str
    elements: int
    operation: Operation | None

    def __str__(self) -> str:
        place = f"result #{self.result} {list(self.index)}: before {self.before}, after {self.after}"
        count = f"{self.elements} element{'' if self.elements == 1 else 's'} of it differ{'s' * (self.elements == 1)}"
        if self.operation is None:
            return f"{place}; {count}; every value computed occurs on both sides"
        return f"{place}; {count}; first new value: {name_of(self.operation)} at {position_of(self.operation)}"


@dataclass(frozen=True)
class Equality:
    """The outcome of a comparison. `nan_results`: number of results with a NaN, which may hide a difference."""

    results: int
    nan_results: int
    difference: ExecutionDifference | None

    @property
    def equal(self) -> bool:
        return self.difference is None


def compare(before: ModuleOp, after: ModuleOp, inputs: Sequence[Any], name: str | None = None) -> Equality:
    """Run the function of both modules on the inputs. Raises `Refusal` if the signatures differ, and as `execute`
    does.
    """
    return PreparedPair.of(before, after, name).compare(inputs)


def _signature(function: FuncOp) -> list[list[str]]:
    """Return the types of arguments and results; a tuple is returned as its elements."""
    type_ = function.function_type
    return [[str(part) for part in types] for types in (type_.inputs, leaf_types(type_.outputs))]


@dataclass(frozen=True)
class PreparedPair:
    """The prepared functions before and after, for repeated runs."""

    before: Executable
    after: Executable

    @classmethod
    def of(cls, before: ModuleOp, after: ModuleOp, name: str | None = None) -> PreparedPair:
        """Prepare both functions. Raises `Refusal` if the signatures differ, and for operations without a kernel."""
        first, second = function_named(before, name), function_named(after, name)
        # As text: a type that xDSL does not know is another object in each module.
        if _signature(first) != _signature(second):
            types = f"{first.function_type} and {second.function_type}"
            raise Refusal(second, f"the functions have different types: {types}")
        return cls(Executable.of(first), Executable.of(second))

    def compare(self, inputs: Sequence[Any]) -> Equality:
        """Run both on the inputs and compare the results. Raises as `execute` does."""
        first, second = self.before.run(inputs), self.after.run(inputs)
        nans = sum(bool(np.any(result != result)) for result in first)
        for number, (left, right) in enumerate(zip(first, second, strict=True)):
            differs = differing(left, right)
            if np.any(differs):
                operation = first_new_value(self.before.function, self.after.function, inputs)
                return Equality(len(first), nans, _difference(number, left, right, differs, operation))
        return Equality(len(first), nans, None)


def _difference(
    number: int, left: Array, right: Array, differs: Array, operation: Operation | None
) -> ExecutionDifference:
    places = np.argwhere(differs)
    index = tuple(int(part) for part in places[0])
    return ExecutionDifference(number, index, _shown(left[index]), _shown(right[index]), len(places), operation)


def differing(left: Array, right: Array) -> Array:
    """Return a mask of the elements whose bit patterns differ; both arrays have one type."""
    left_bytes, right_bytes = (row_by_row(array).reshape(*array.shape, 1).view(np.uint8) for array in (left, right))
    return np.any(left_bytes != right_bytes, axis=-1)


def _shown(value: Any) -> str:
    """Return the number as text, with the bits of NaN and zeros."""
    array = np.asarray(value)
    if array.dtype.kind != "c" and (np.any(array != array) or np.all(array == 0)):
        return f"{array} (0x{array.tobytes()[::-1].hex()})"
    return str(array)


def first_new_value(before: FuncOp, after: FuncOp, inputs: Sequence[Any]) -> Operation | None:
    """Return the first operation of `after` with a value that no operation of `before` computes; None if there
    is none."""
    digests_before, digests_after = Digests(before), Digests(after)
    execute(before, inputs, digests_before)
    execute(after, inputs, digests_after)
    known_digests = {digest for digests in digests_before.of.values() for digest in digests}
    return next((op for op, digests in digests_after.of.items() if not known_digests.issuperset(digests)), None)


class Digests:
    """Records digests of the values of a run, as its `Observer`."""

    def __init__(self, function: FuncOp):
        self.block = function.body.block
        self.of = dict[Operation, list[bytes]]()

    def made(self, op: Operation, arrays: Sequence[Any]) -> None:
        if op.parent is self.block:
            self.of[op] = [digest(array) for value in arrays for array in leaves(value) if array is not None]

    def yielded(self, op: Operation, arrays: Sequence[Array]) -> None: ...

    def carried(self, op: Operation, arrays: Sequence[Array]) -> None: ...


def digest(array: Array) -> bytes:
    header = f"{array.dtype.name}{array.shape}".encode()
    return hashlib.blake2b(header + row_by_row(array).tobytes(), digest_size=16).digest()
