"""An observer of long executions, which reports the progress of a run and stops the run at a time limit. The limit is
checked after each operation, also inside loops and branches, but a running numpy kernel is not interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from time import monotonic
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from .kernels.arrays import Array


class TimeLimitReached(Exception):
    """Raised if an execution reaches its time limit."""


class ExecutionMonitor:
    """An observer that counts the executed top-level operations of each run and enforces a time limit.

    Args:
        seconds: The time limit in seconds, counted from now.
        report: Called with the index of the current run, from 0, and with the share of its operations that have run.
    """

    def __init__(self, seconds: float = inf, report: Callable[[int, float], None] = lambda run, share: None):
        self.end = monotonic() + seconds
        self.report = report
        self._run = -1
        self._block: Block | None = None
        self._operations = self._done = 0

    def begin(self, function: FuncOp) -> None:
        """Begin to observe the next run, which executes this function.

        Raises:
            TimeLimitReached: The time limit has passed.
        """
        self._run += 1
        self._block = function.body.block
        self._operations, self._done = len(self._block.ops), 0
        self._check()

    def on_results(self, op: Operation, arrays: Sequence[Any]) -> None:
        if op.parent is self._block:
            self._done += 1
        self._check()

    def on_yield(self, op: Operation, arrays: Sequence[Array]) -> None: ...

    def on_carry(self, op: Operation, arrays: Sequence[Array]) -> None: ...

    def _check(self) -> None:
        if monotonic() > self.end:
            raise TimeLimitReached
        self.report(self._run, self._done / self._operations)
