"""The kernels that Python calls, plain or compiled, and the choice between the two.

Both give the same results. Plain Python is about a hundred times slower, but numba takes a second to load compiled
kernels, and many seconds to compile them after an installation. So small problems begin with the plain kernels, and
change to the compiled ones once the plain ones have taken as long as this.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from time import thread_time

from .compiled import CompiledKernels, chosen_path, is_available
from .greedy import greedy
from .initial import add_all, list_pairs, most_bytes, reset
from .remove_copies import reverse_delete
from .ruin_recreate import remember, rounds
from .state import Board, Keys

MOST_OPERATIONS = 500
"""Number of operations above which a problem uses the compiled kernels at once."""
SECONDS_IF_CACHED, SECONDS_IF_NOT = 0.5, 6.0
"""CPU seconds of plain kernels after which the compiled ones are used: if an earlier process has compiled them, and if
not."""
COMPILING = "compiling the search for plans with numba, once per installation"
_LOG = logging.getLogger("recompute.planning")


@dataclass(frozen=True)
class Kernels:
    """The kernels that Python calls, each described in its module."""

    add_all: Callable[[Board, list[int], list[int]], None] = add_all
    greedy: Callable[[Board, Keys, float, float, bool, int], int] = greedy
    list_pairs: Callable[[Board, int], int] = list_pairs
    most_bytes: Callable[[Board], int] = most_bytes
    remember: Callable[[Board], None] = remember
    reset: Callable[[Board, int], None] = reset
    reverse_delete: Callable[[Board, bool, int], None] = reverse_delete
    rounds: Callable[[Board, Keys, int, int, int, float], int] = rounds


PLAIN = Kernels()


@dataclass
class KernelChoice:
    """The choice between plain and compiled kernels.

    Attributes:
        plain_seconds: The CPU seconds of plain kernels so far.
    """

    plain_seconds: float = 0.0

    def kernels(self, operations: int) -> Kernels:
        """Return the kernels to use next for a problem of this number of operations."""
        if not is_available():
            return PLAIN
        is_small = operations <= MOST_OPERATIONS and chosen_path() != "compiled"
        if is_small and self.plain_seconds < SECONDS_IF_CACHED:
            return PLAIN
        if is_small and self.plain_seconds < SECONDS_IF_NOT and not self.is_cached:
            return PLAIN
        return self._compiled

    @contextmanager
    def timed(self, kernels: Kernels) -> Generator[None, None, None]:
        """Add the time of the code in the context to that of plain kernels, if these are."""
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
        return self._dispatchers.is_cached(rounds)

    @cached_property
    def _compiled(self) -> Kernels:
        if not self.is_cached:
            _LOG.warning(COMPILING)
        of = self._dispatchers.of
        return Kernels(**{field.name: of(getattr(PLAIN, field.name)) for field in fields(PLAIN)})


CHOICE = KernelChoice()
"""The choice of this process."""
