"""The record of a candidate that a budget search has compiled and measured, for reports and refusals."""

from __future__ import annotations

from dataclasses import dataclass

from ...support.units import format_bytes
from .refusal_text import budget_verdict

WITHOUT_BUDGET = "as without a budget"
"""The description of the choice that is made without a budget."""


@dataclass(frozen=True)
class CompiledCandidate:
    """A candidate that the search has compiled, with its predicted and its measured memory.

    Attributes:
        words: The description of the candidate.
        predicted_bytes: The temporaries in bytes that the model predicts; None for the choice without a budget.
        measured_bytes: The temporaries in bytes that the compiler reports; None if the plan could not be applied.
        extra_flops: The extra FLOPs.
        fits: Whether the candidate is within the budget; None for the budget `min`.
    """

    words: str
    predicted_bytes: int | None
    measured_bytes: int | None
    extra_flops: int
    fits: bool | None

    def __str__(self) -> str:
        if self.measured_bytes is None:
            return f"{self.words}: cannot be applied"
        predicted = "" if self.predicted_bytes is None else f"{format_bytes(self.predicted_bytes)} predicted, "
        measured = f"{format_bytes(self.measured_bytes)} by the compiler{budget_verdict(self.fits)}"
        return f"{self.words}: {predicted}{measured}; {self.extra_flops:.3g} FLOPs more"
