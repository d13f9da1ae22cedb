"""Compile a JAX step within budgets with `recompute.jax.jit`, and compare it with the step under `jax.checkpoint`."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import recompute
from recompute.benchmarks.harness.compiled_cost import temporaries_and_flops

MAX_COMPILES = 4
"""The number of compilations after which a budget search must stop (docs/jax_compilation.md)."""
BUDGET_HEAD = ("step", "budget", "allowed", "needs", "use", "FLOPs", "theirs", "compiles", "s", "refused")
"""The titles of the columns that `BudgetRow.cells` fills."""


@dataclass(frozen=True)
class RequestedBudget:
    """A budget within which a step is compiled.

    Attributes:
        label: The name of the budget in the table.
        argument: The argument `budget` of `recompute.jax.jit`.
        allowed: The temporaries that the budget allows, as a share of the plain step's; None for `min`.
        theirs: The FLOPs with `jax.checkpoint`, as a multiple of the plain step's, if the budget equals the temporaries
            with `jax.checkpoint`; None for other budgets.
    """

    label: str
    argument: Any
    allowed: float | None
    theirs: float | None = None

    @classmethod
    def of_share(cls, share: float) -> RequestedBudget:
        """Return a budget equal to a share of the plain step's temporaries."""
        return cls(f"{share:g}", share, share)

    @classmethod
    def of_checkpoint(cls, share: float, flops: float) -> RequestedBudget:
        """Return a budget equal to the temporaries that the step needs with `jax.checkpoint`.

        Args:
            share: These temporaries, as a share of the plain step's.
            flops: The FLOPs with `jax.checkpoint`, as a multiple of the plain step's.
        """
        share = math.nextafter(share, 1)  # Round up, so that the budget includes all of these bytes.
        return cls("jax.checkpoint", share, share, flops)


@dataclass(frozen=True)
class BudgetRow:
    """The measurement of a step within a budget. Values that do not apply are None.

    Attributes:
        step: The name of the step.
        budget: The name of the budget in the table.
        allowed: The temporaries that the budget allows, as a share of the plain step's.
        needs: The temporaries that the compiled step needs, as a share of the plain step's.
        work: The FLOPs of the compiled step, as a multiple of the plain step's.
        theirs: The FLOPs with `jax.checkpoint` within this budget, as a multiple of the plain step's.
        compiles: The number of compilations of the budget search.
        seconds: The wall time from the call to `recompute.jax.jit` until the step is compiled.
        refused: The reason why the budget was refused.
    """

    step: str
    budget: str
    allowed: float | None
    needs: float | None
    work: float | None
    theirs: float | None
    compiles: int
    seconds: float
    refused: str | None = None

    @property
    def use(self) -> float | None:
        """The share of the budget that the compiled step needs."""
        return None if self.needs is None or self.allowed is None else self.needs / self.allowed

    def missed(self) -> Iterator[str]:
        """Yield a message for each unmet requirement on the budget, the number of compilations, and the FLOPs."""
        name = f"{self.step}, budget {self.budget}"
        if self.needs is not None and self.allowed is not None and self.needs > self.allowed:
            yield f"{name}: {self.needs:.3f} of the plain step's temporaries, above the allowed {self.allowed:.3f}"
        if self.compiles > MAX_COMPILES:
            yield f"{name}: {self.compiles} compilations, more than {MAX_COMPILES}"
        if self.theirs is not None and self.work is None:
            yield f"{name}: refused, although the step with jax.checkpoint is within this budget"
        elif self.theirs is not None and self.work is not None and self.work > self.theirs:
            yield f"{name}: {self.work} × the plain step's FLOPs, but {self.theirs} with jax.checkpoint"

    def cells(self) -> list[str]:
        """Return the cells of the table row, in the order of `BUDGET_HEAD`."""
        shares = (self.allowed, self.needs, self.use, self.work, self.theirs)
        numbers = ("" if share is None else f"{share:.3f}" for share in shares)
        return [self.step, self.budget, *numbers, str(self.compiles), f"{self.seconds:.0f}", self.refused or ""]


def compile_within_budget(
    name: str, jitted: Any, arguments: Any, request: RequestedBudget, plain: tuple[int, float]
) -> tuple[BudgetRow, Any]:
    """Compile a step within a budget, and return its row and the compiled step, which is None for a refused budget.

    Args:
        name: The name of the step.
        jitted: The step as `recompute.jax.jit` returns it, with the requested budget.
        arguments: The arguments of the step.
        request: The budget.
        plain: The plain step's temporaries in bytes, and its FLOPs.
    """
    start = time.perf_counter()

    def row(needs: float | None, work: float | None, compiles: int, refused: str | None = None) -> BudgetRow:
        seconds = time.perf_counter() - start
        return BudgetRow(name, request.label, request.allowed, needs, work, request.theirs, compiles, seconds, refused)

    try:
        lowered = jitted.lower_quietly(*arguments)
    except recompute.Refusal as error:
        return row(None, None, MAX_COMPILES, error.reason.split(";")[0].splitlines()[0]), None
    compiled = lowered.compile()
    temporaries, flops = temporaries_and_flops(compiled)
    compiles = 0 if lowered.within is None else len(lowered.within.rounds)
    return row(temporaries / plain[0], flops / plain[1], compiles), compiled
