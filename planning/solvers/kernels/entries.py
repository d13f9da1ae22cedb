"""The kernels that Python calls, and the choice between their plain and compiled forms.

Both forms give the same results. Plain Python is about a hundred times slower, but numba takes a second to load
compiled kernels, and many seconds to compile them after an installation. So small problems begin with the plain
kernels, and switch to the compiled kernels once the plain kernels have taken as long as compiling or loading would
take.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from time import thread_time

from ....support.interrupts import seconds_left
from .board import Board, Keys
from .compiled import COMPILE_SECONDS, CompiledKernels, chosen_path, is_available
from .copy_lists import add_copies, list_copies
from .greedy import greedy
from .plain_step import reset
from .reverse_delete import reverse_delete
from .ruin_recreate import anneal, record_best
from .sqrt_blocks import peak_bytes

MAX_PLAIN_OPERATIONS = 500
"""Number of operations above which a problem uses the compiled kernels at once. On such a problem the plain kernels
would exceed the time limits below."""
CACHED_SECONDS, UNCACHED_SECONDS = 0.5, 6.0
"""CPU seconds of plain kernels after which the compiled kernels are used. The first limit applies if an earlier process
has compiled the kernels, and the second limit otherwise."""
COMPILING = (
    f"compiling the search for plans with numba, once per installation: about {COMPILE_SECONDS:.0f} s of CPU time"
)
_LOG = logging.getLogger("recompute.planning")


@dataclass(frozen=True)
class Kernels:
    """The kernels that Python calls, each described in its module."""

    add_copies: Callable[[Board, list[int], list[int]], None] = add_copies
    anneal: Callable[[Board, Keys, int, int, int, float], int] = anneal
    greedy: Callable[[Board, Keys, float, float, bool, int], int] = greedy
    list_copies: Callable[[Board, int], int] = list_copies
    peak_bytes: Callable[[Board], int] = peak_bytes
    record_best: Callable[[Board], None] = record_best
    reset: Callable[[Board, int], None] = reset
    reverse_delete: Callable[[Board, bool, int], None] = reverse_delete


PLAIN = Kernels()


@dataclass
class KernelChoice:
    """The choice between plain and compiled kernels.

    Attributes:
        plain_seconds: The CPU seconds that plain kernels have taken so far.
    """

    plain_seconds: float = 0.0

    def kernels(self, operations: int) -> Kernels:
        """Return the kernels to use next for a problem with this number of operations. If compiling the kernels would
        exceed the time limit, a small problem keeps the plain kernels, unless an earlier process has already compiled
        them."""
        if not is_available():
            return PLAIN
        is_small = operations <= MAX_PLAIN_OPERATIONS and chosen_path() != "compiled"
        if is_small and self.plain_seconds < CACHED_SECONDS:
            return PLAIN
        is_too_early = self.plain_seconds < UNCACHED_SECONDS or seconds_left() < COMPILE_SECONDS
        if is_small and is_too_early and not self.is_cached:
            return PLAIN
        return self._compiled_kernels

    @contextmanager
    def timed(self, kernels: Kernels) -> Generator[None, None, None]:
        """Measure the CPU time of the code in the context. If the kernels are plain, add this time to
        `plain_seconds`."""
        start = thread_time()
        yield
        if kernels is PLAIN:
            self.plain_seconds += thread_time() - start

    @cached_property
    def _dispatchers(self) -> CompiledKernels:
        return CompiledKernels({getattr(PLAIN, field.name) for field in fields(PLAIN)})

    @cached_property
    def is_cached(self) -> bool:
        """Whether an earlier process has compiled the kernels."""
        return self._dispatchers.is_cached(anneal)

    @cached_property
    def _compiled_kernels(self) -> Kernels:
        if not self.is_cached:
            _LOG.warning(COMPILING)
        compiled_copy = self._dispatchers.compiled_copy
        return Kernels(**{field.name: compiled_copy(getattr(PLAIN, field.name)) for field in fields(PLAIN)})


CHOICE = KernelChoice()
"""The choice of kernels in this process."""
