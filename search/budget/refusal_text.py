"""The message for a refused budget: the failure, the limit, the smallest measured need, and the measured candidates.

Example:

    no plan is within the budget 5%, 1.0 MiB of 20.0 MiB of temporaries: the smallest compiled candidate needs 4.1 MiB
      named segments: 4.0 MiB predicted, 4.1 MiB by the compiler, above the budget; 2.71e+07 FLOPs more
"""

from __future__ import annotations

from collections.abc import Iterable


def refusal_text(failure: str, limit: str, least: str, candidates: Iterable[object], separator: str) -> str:
    """Return the message for a budget that no measured candidate meets.

    Args:
        failure: The failure, such as `no plan is within the budget 5%`.
        limit: The limit with the name of the limited quantity.
        least: The smallest measured need as a phrase, or the reason that nothing was measured.
        candidates: The measured candidates, whose strings give their needs.
        separator: The string between the first part and the candidates.
    """
    return separator.join([f"{failure}, {limit}: {least}", *map(str, candidates)])


def budget_verdict(fits: bool | None) -> str:
    """Return the verdict on a measured candidate, as a suffix of its size in a message; "" for the budget `min`."""
    return {True: ", within the budget", False: ", above the budget", None: ""}[fits]
