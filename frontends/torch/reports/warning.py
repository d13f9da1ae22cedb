"""The warning about a graph that this package leaves unchanged."""

from __future__ import annotations

import warnings

from ....driver.verification.verified import NotProved
from ....support.diagnostics import Refusal
from ...nothing_saved import NothingSaved as NothingSaved
from ..fx.unsupported import Unsupported


def reason_of(error: Exception) -> str:
    """Return the reason for an error as one line. An unexpected error is described by its type and message."""
    if isinstance(error, Refusal):
        return error.reason
    return str(error) if isinstance(error, Unsupported | NotProved) else f"{type(error).__name__}: {error}"


def warn_plain(error: Exception) -> None:
    """Warn that a graph is left to PyTorch's own partitioner."""
    words = f"recompute.torch: nothing is recomputed, and PyTorch's own partitioner is used: {reason_of(error)}"
    warnings.warn(words, NothingSaved, stacklevel=2)
