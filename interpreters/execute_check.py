"""Do two programs compute the same bits on given inputs, and if not, where do they part?

Results are compared as bit patterns: NaN payloads and the sign of zero count. When a result differs, both programs run
once more, and each value that an operation of the function makes is noted by its type and a digest of its bits. The
programs part at the first operation of the second one, in program order, with a value that occurs nowhere in the first:
everything before it has a counterpart, so it is where something new came in. Calls and loops count as one operation;
inline both modules to see inside calls.
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

from ..rules.names import name_of
from ..support.diagnostics import Refusal, position_of
from .executor import Executable, execute, function_named
from .kernels.arrays import Array, row_by_row


@dataclass(frozen=True)
class Difference:
    """The first result, by number, whose bits differ, the first such element, and where the programs part."""

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
    """What executing both programs has shown; `nan_results` of the results hold a NaN, which may hide a difference."""

    results: int
    nan_results: int
    difference: Difference | None

    @property
    def equal(self) -> bool:
        return self.difference is None


def compare(before: ModuleOp, after: ModuleOp, inputs: Sequence[Any], name: str | None = None) -> Equality:
    """Run the function of both modules on the inputs. Raises `Refusal` where the signatures differ, and as `execute`
    does.
    """
    return Pair.of(before, after, name).compare(inputs)


@dataclass(frozen=True)
class Pair:
    """The function before and after, ready to run on one input after the other."""

    before: Executable
    after: Executable

    @classmethod
    def of(cls, before: ModuleOp, after: ModuleOp, name: str | None = None) -> Pair:
        """Raises `Refusal` where the signatures differ, and for what cannot be executed."""
        one, other = function_named(before, name), function_named(after, name)
        # As text: a type that xDSL does not know is another object in each module.
        if str(one.function_type) != str(other.function_type):
            raise Refusal(other, f"the functions have different types: {one.function_type} and {other.function_type}")
        return cls(Executable.of(one), Executable.of(other))

    def compare(self, inputs: Sequence[Any]) -> Equality:
        """Raises as `execute` does."""
        first, second = self.before.run(inputs), self.after.run(inputs)
        nans = sum(bool(np.any(result != result)) for result in first)
        for number, (left, right) in enumerate(zip(first, second, strict=True)):
            differs = differing(left, right)
            if np.any(differs):
                operation = first_new_value(self.before.function, self.after.function, inputs)
                return Equality(len(first), nans, _difference(number, left, right, differs, operation))
        return Equality(len(first), nans, None)


def _difference(number: int, left: Array, right: Array, differs: Array, operation: Operation | None) -> Difference:
    places = np.argwhere(differs)
    index = tuple(int(part) for part in places[0])
    return Difference(number, index, _shown(left[index]), _shown(right[index]), len(places), operation)


def differing(left: Array, right: Array) -> Array:
    """Where the bit patterns of two arrays of one type differ."""
    one, other = (row_by_row(array).reshape(*array.shape, 1).view(np.uint8) for array in (left, right))
    return np.any(one != other, axis=-1)


def _shown(value: Any) -> str:
    """The number, and the bits where the number does not tell: NaN and zeros."""
    array = np.asarray(value)
    if array.dtype.kind != "c" and (np.any(array != array) or np.all(array == 0)):
        return f"{array} (0x{array.tobytes()[::-1].hex()})"
    return str(array)


def first_new_value(before: FuncOp, after: FuncOp, inputs: Sequence[Any]) -> Operation | None:
    """The first operation of `after` with a value that no operation of `before` makes; None if there is none."""
    known, found = Digests(before), Digests(after)
    execute(before, inputs, known)
    execute(after, inputs, found)
    seen = {digest for digests in known.of.values() for digest in digests}
    return next((op for op, digests in found.of.items() if not seen.issuperset(digests)), None)


class Digests:
    """Notes the values of a run, as its `Observer`."""

    def __init__(self, function: FuncOp):
        self.block = function.body.block
        self.of = dict[Operation, list[bytes]]()

    def made(self, op: Operation, arrays: Sequence[Any]) -> None:
        if op.parent is self.block:
            self.of[op] = [digest(array) for array in arrays if array is not None]

    def yielded(self, op: Operation, arrays: Sequence[Array]) -> None: ...

    def carried(self, op: Operation, arrays: Sequence[Array]) -> None: ...


def digest(array: Array) -> bytes:
    header = f"{array.dtype.name}{array.shape}".encode()
    return hashlib.blake2b(header + row_by_row(array).tobytes(), digest_size=16).digest()
