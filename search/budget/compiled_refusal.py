"""The error for a budget that no compiled candidate meets. It lists the candidates and the smallest size reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...support.diagnostics import Refusal
from ...support.units import format_bytes, is_share, readable_bytes
from ..candidate_plans.pool import Pool
from .compiled_candidate import WITHOUT_BUDGET, CompiledCandidate
from .refusal_text import refusal_text


class BudgetNotReached(Refusal):
    """The refusal of a budget that no compiled candidate meets.

    Attributes:
        least_bytes: The temporaries, in bytes, of the smallest candidate that any search on the step has compiled; None
            if nothing can be recomputed.
    """

    def __init__(self, op: Operation, reason: str, least_bytes: int | None):
        super().__init__(op, reason)
        self.least_bytes = least_bytes


@dataclass(frozen=True, kw_only=True)
class FailedSearch:
    """A search that found no candidate within the budget.

    Attributes:
        module: The step, for the position of the error.
        budget: The budget as the user wrote it.
        limit_bytes: The bytes that the budget leaves for temporaries.
        plain_bytes: The temporaries of the plain step, in bytes.
        rounds: The candidates that the search compiled.
        is_interrupted: Whether Ctrl-C has ended the search.
        seconds: The time limit that has ended the search; None if no time limit has.
    """

    module: ModuleOp
    budget: str
    limit_bytes: int
    plain_bytes: int
    rounds: Sequence[CompiledCandidate]
    is_interrupted: bool
    seconds: float | None

    def refusal(self, pool: Pool, compilers_key: str) -> BudgetNotReached:
        """Return the error that refuses the budget.

        The first line gives the smallest size that this search, or an earlier search for the step, has measured. The
        following lines list the candidates that this search has compiled, one on each line.

        Args:
            pool: The candidates of the step, with the sizes that all searches measured.
            compilers_key: The key of the compilers in the pool.
        """
        sizes = list(pool.measured[compilers_key].values())
        unbudgeted = pool.unbudgeted.get(compilers_key)
        if unbudgeted is not None:
            sizes.append(unbudgeted)
        least_bytes = int(min(sizes)) if sizes else None
        least = "nothing can be recomputed"
        if least_bytes is not None:
            least = f"the smallest compiled candidate needs {readable_bytes(least_bytes)}"
        if self.seconds is not None:
            least += "; give the search more time with time_limit="
        limit = f"{format_bytes(self.limit_bytes)} of {format_bytes(self.plain_bytes)} of temporaries{self._beside}"
        lines = [*self.rounds, *self._lines_of_earlier_search(least_bytes, unbudgeted)]
        return BudgetNotReached(self.module, refusal_text(self._failure, limit, least, lines, "\n  "), least_bytes)

    @property
    def _beside(self) -> str:
        """A phrase that gives the bytes of arguments and results, which a budget in bytes includes; "" for a share."""
        return "" if is_share(self.budget) else " beside the arguments and results"

    @property
    def _failure(self) -> str:
        if self.is_interrupted:
            return f"no plan for the budget {self.budget} was found before the interrupt"
        if self.seconds is not None:
            return f"no plan for the budget {self.budget} was found within the time limit of {self.seconds:g} s"
        return f"no plan is within the budget {self.budget}"

    def _lines_of_earlier_search(self, least_bytes: int | None, unbudgeted: float | None) -> Iterator[str]:
        """Yield a line on the smallest candidate, if it was compiled by an earlier search on the step."""
        if least_bytes is None or least_bytes in [compiled.measured_bytes for compiled in self.rounds]:
            return
        words = WITHOUT_BUDGET if unbudgeted == least_bytes else "a candidate of an earlier search"
        yield f"{words}: {format_bytes(least_bytes)} by the compiler, above the budget"
