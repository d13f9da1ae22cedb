"""The result of a search under a budget: the compiled step, all compiled candidates, and the record that the disk cache
stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import jax

from ....driver.rewrites.rewritten import Rewritten
from ....search.budget.compiled_candidate import CompiledCandidate
from ....support.units import format_bytes, is_share, readable_bytes
from .allocation import fixed_bytes, temporary_bytes


@dataclass(frozen=True, kw_only=True)
class BudgetedCompile:
    """A step that was compiled within a budget.

    Attributes:
        budget: The budget as the user wrote it.
        limit_bytes: The bytes that the budget leaves for temporaries; None for the budget `min`.
        plain_bytes: The temporaries of the plain step.
        rounds: The candidates that were compiled.
        rewritten: The rewrite by the best candidate; None if the plain step runs.
        compiled: The compiled step: the rewritten step if there is one, otherwise the plain step.
        plain_step: The compiled plain step; None if an earlier process computed the result.
        is_complete: Whether the search was completed rather than stopped by a time limit or Ctrl-C.
        is_keeping: Whether the step that runs is the plain step with its own barriers kept. In `plain_step`, the
            compiler has dropped these barriers.
    """

    budget: str
    limit_bytes: int | None
    plain_bytes: int
    rounds: tuple[CompiledCandidate, ...]
    rewritten: Rewritten | None
    compiled: jax.stages.Compiled
    plain_step: jax.stages.Compiled | None = None
    is_complete: bool = True
    is_keeping: bool = False

    @property
    def summary(self) -> str:
        """The result of the search, with the bytes that were compared with the budget.

        A budget that is a share limits the temporaries; a budget in bytes limits the memory of the device:

            19.5 MiB -> 4.1 MiB of temporaries, within the budget of 0.5
            19.5 MiB -> 4.1 MiB of temporaries; 12.3 MiB with arguments and results, within the budget of 16MiB
        """
        measured = temporary_bytes(self.compiled)
        after = self.plain_bytes if measured is None else measured
        before = format_bytes(self.plain_bytes)
        if self.limit_bytes is None:
            return f"{before} -> {format_bytes(after)} of temporaries, the minimum that was found"
        with_fixed = ""
        if measured is not None and not is_share(self.budget):
            with_fixed = f"; {format_bytes(after + fixed_bytes(self.compiled))} with arguments and results"
        within = f"{with_fixed}, within the budget of {self.budget}"
        if self.rewritten is None and not self.is_keeping:
            return f"{before} of temporaries{within} as it is"
        return f"{before} -> {format_bytes(after)} of temporaries{within}"

    @property
    def why_plain(self) -> str:
        """The message that gives the reason why the plain step runs."""
        if self.is_keeping:
            needed = f"{readable_bytes(temporary_bytes(self.compiled) or 0)} of temporaries"
            return f"its own jax.checkpoint already recomputes values, and the plain step with it needs {needed}"
        if self.limit_bytes is None:
            return f"no candidate needs less than the plain step, {readable_bytes(self.plain_bytes)} of temporaries"
        needed = f"{readable_bytes(self.plain_bytes)} of temporaries"
        return f"no recomputation is needed: the plain step needs {needed}, within the budget {self.budget}"


def record_of(result: BudgetedCompile) -> dict[str, Any]:
    """Return the result of the search as JSON values, without the compiled step and its rewrite."""
    record = {name: getattr(result, name) for name in ("budget", "limit_bytes", "plain_bytes", "is_keeping")}
    temporaries = temporary_bytes(result.compiled)
    return {**record, "rounds": [asdict(compiled) for compiled in result.rounds], "temporary_bytes": temporaries}


def result_of_record(
    record: Mapping[str, Any], rewritten: Rewritten | None, compiled: jax.stages.Compiled
) -> BudgetedCompile | None:
    """Restore the result of a search from its cache record and the recompiled step.

    Return None if the size of the temporaries differs from the record.
    """
    if temporary_bytes(compiled) != record["temporary_bytes"]:
        return None
    rounds = tuple([CompiledCandidate(**compiled_before) for compiled_before in record["rounds"]])
    budget, limit_bytes, plain_bytes = record["budget"], record["limit_bytes"], record["plain_bytes"]
    is_keeping = record["is_keeping"]
    return BudgetedCompile(
        budget=budget,
        limit_bytes=limit_bytes,
        plain_bytes=plain_bytes,
        rounds=rounds,
        rewritten=rewritten,
        compiled=compiled,
        is_keeping=is_keeping,
    )
