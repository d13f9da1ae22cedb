"""The warning that a step runs unchanged, which all frontends use."""

from __future__ import annotations


class NothingSaved(UserWarning):
    """Warns that a step runs as it would without this package, or that copies, which marks or segment budgets demand,
    raise its predicted peak. The message gives the reason and, if there is one, a remedy."""
