"""The warning for a graph that runs as it would without this package."""

from __future__ import annotations

import warnings

from ...driver.verified import NotProved
from ...support.diagnostics import Refusal
from .unsupported import Unsupported


class NothingSaved(UserWarning):
    """A graph is left to PyTorch's own partitioner; the message has the reason."""


def reason_of(error: Unsupported | Refusal | NotProved) -> str:
    """The reason of a refusal, in one line."""
    return error.reason if isinstance(error, Refusal) else str(error)


def warn_plain(error: Unsupported | Refusal | NotProved) -> None:
    """Warn that a graph is left to PyTorch's own partitioner."""
    words = f"recompute.torch: nothing is recomputed, PyTorch's own partitioner is used: {reason_of(error)}"
    warnings.warn(words, NothingSaved, stacklevel=2)
