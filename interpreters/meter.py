"""Measure the memory of a run. Each numpy buffer is counted from its allocation until Python frees it.

A finalizer on the array that owns a buffer reports when the buffer is freed, so the measurement does not need to know
which operations are views. As in the static timeline (`analysis/memory/timeline.py`), arguments and results are not
counted, and constant expressions are counted separately. While a called function runs, the values that it returns are
temporaries.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ..analysis.step.order import Order, constants_only, single_block
from ..analysis.step.views import storages
from ..dialects.placements import is_to_host
from ..support.live_bytes import index_of_largest, largest
from ..support.operations import name_of
from .executor import execute
from .inputs import check_inputs
from .kernels.arrays import Array

CALLS = ("func.call", "stablehlo.composite")


class BufferRole(Enum):
    """The role of a buffer in the measurement. Only temporaries and constants are included in the peaks."""

    ARGUMENT = "argument"
    RESULT = "result"
    CONSTANT = "constant"
    HOST = "on the host"
    TEMPORARY = "temporary"


@dataclass(frozen=True)
class Metering:
    """The measured memory of a run, in bytes, for each top-level operation.

    Attributes:
        operations: Names of the operations, in program order.
        live_bytes: Peak of the live temporaries during each operation.
        constant_bytes: Peak of the live constants during each operation.
    """

    operations: tuple[str, ...]
    live_bytes: tuple[int, ...]
    constant_bytes: tuple[int, ...]

    @property
    def peak_bytes(self) -> int:
        return largest(self.live_bytes)

    @property
    def peak_index(self) -> int:
        return index_of_largest(self.live_bytes)

    @property
    def constant_peak_bytes(self) -> int:
        return max(self.constant_bytes, default=0)


def meter(function: FuncOp, inputs: Sequence[Any]) -> tuple[tuple[Array, ...], Metering]:
    """Run a function that contains no calls, and measure its memory.

    Returns:
        The results, and the measured memory.

    Raises:
        ValueError: An input does not match the signature.
        Refusal: An operation cannot be executed.
    """
    ledger = Ledger(BufferRoles(function))
    arrays = check_inputs(function, inputs)
    for array in arrays:
        ledger.enter(array, BufferRole.ARGUMENT)
    results = execute(function, arrays, ledger)
    ledger.check_results(results)
    names = tuple(name_of(op) for op in ledger.kinds.order.operations)
    return results, Metering(names, tuple(ledger.live_bytes), tuple(ledger.constant_bytes))


class BufferRoles:
    """Determines the roles of the values in a function and its regions."""

    def __init__(self, function: FuncOp):
        self.order = Order.of(single_block(function))
        shared = storages(self.order)
        returned = {shared.owner(value) for value in self.order.operations[-1].operands}
        self.results = {
            value for op in self.order.operations for value in op.results if shared.owner(value) in returned
        }
        self.constants: dict[Block, frozenset[SSAValue]] = {self.order.block: constants_only(self.order)}

    def of(self, value: SSAValue) -> BufferRole:
        block = value.owner.parent if isinstance(value.owner, Operation) else value.owner
        assert block is not None, "a computed value has a block"
        if value in self._constants_of(block):
            return BufferRole.CONSTANT
        if isinstance(value.owner, Operation) and is_to_host(value.owner):
            return BufferRole.HOST
        return BufferRole.RESULT if value in self.results else BufferRole.TEMPORARY

    def _constants_of(self, block: Block) -> frozenset[SSAValue]:
        """Return the constants of a block. In a loop that reads only constants, all values are treated as constants,
        including the region arguments.
        """
        if block not in self.constants:
            around = block.parent_op()
            outer = around.parent if around is not None else None
            outside = frozenset[SSAValue]() if around is None or outer is None else self._constants_of(outer)
            if around is not None and around.results and all(result in outside for result in around.results):
                outside = outside | set(block.args)
            self.constants[block] = constants_only(Order.of(block), outside)
        return self.constants[block]


class Ledger:
    """An observer that tracks the live buffers of a run."""

    def __init__(self, kinds: BufferRoles):
        self.kinds = kinds
        self.kind_of_owner = dict[int, BufferRole]()
        self.alive = dict.fromkeys(BufferRole, 0)
        self.live_bytes = list[int]()
        self.constant_bytes = list[int]()
        self.highest = dict.fromkeys(BufferRole, 0)

    def on_results(self, op: Operation, arrays: Sequence[Any]) -> None:
        for value, array in zip(op.results, arrays, strict=False):
            # Tokens have no array, and tuples have only the arrays of their elements.
            if array is None or isinstance(array, tuple):
                continue
            self.enter(array, self.kinds.of(value))
            if name_of(op) in CALLS and self.kind_of_owner[id(owner_of(array))] is BufferRole.TEMPORARY:
                # The called function has allocated the buffer.
                self.count_as(array, self.kinds.of(value))
        self._update_peaks()
        if op.parent is self.kinds.order.block:
            self._next_operation()

    def on_yield(self, op: Operation, arrays: Sequence[Array]) -> None:
        """Count the next carries of a loop as temporaries, or as constants if the results of the loop are constants."""
        loop = op.parent_op()
        assert loop is not None, "a yield is in a loop"
        all_constant = any(self.kinds.of(value) is BufferRole.CONSTANT for value in loop.results)
        for array in arrays:
            self.count_as(array, BufferRole.CONSTANT if all_constant else BufferRole.TEMPORARY)
        self._update_peaks()

    def on_carry(self, op: Operation, arrays: Sequence[Array]) -> None:
        for value, array in zip(op.results, arrays, strict=True):
            self.count_as(array, self.kinds.of(value))

    def enter(self, array: Array, kind: BufferRole) -> None:
        """Begin to count the buffer of an array under a role, unless it is already counted."""
        owner = owner_of(array)
        if id(owner) in self.kind_of_owner:
            return
        weakref.finalize(owner, self._release, id(owner), owner.nbytes).atexit = False
        self.kind_of_owner[id(owner)] = kind
        self.alive[kind] += owner.nbytes

    def count_as(self, array: Array, kind: BufferRole) -> None:
        """Change the role in which the buffer of an array is counted."""
        self.enter(array, kind)
        owner = owner_of(array)
        self.alive[self.kind_of_owner[id(owner)]] -= owner.nbytes
        self.kind_of_owner[id(owner)] = kind
        self.alive[kind] += owner.nbytes

    def _release(self, identity: int, size: int) -> None:
        self.alive[self.kind_of_owner.pop(identity)] -= size

    def _update_peaks(self) -> None:
        for kind in (BufferRole.TEMPORARY, BufferRole.CONSTANT):
            self.highest[kind] = max(self.highest[kind], self.alive[kind])

    def _next_operation(self) -> None:
        """Record the peaks of the current top-level operation and reset them for the next one."""
        self.live_bytes.append(self.highest[BufferRole.TEMPORARY])
        self.constant_bytes.append(self.highest[BufferRole.CONSTANT])
        self.highest = dict.fromkeys(BufferRole, 0)

    def check_results(self, results: Sequence[Array]) -> None:
        """Assert that the results' buffers are the buffers that were counted as results."""
        returned = {id(owner_of(result)) for result in results}
        for identity, kind in self.kind_of_owner.items():
            assert kind is not BufferRole.TEMPORARY or identity not in returned, "counted a result as temporary"
            assert kind is not BufferRole.RESULT or identity in returned, "counted a temporary as result"


def owner_of(array: Array) -> Array:
    """Return the array that owns the buffer of an array."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner
