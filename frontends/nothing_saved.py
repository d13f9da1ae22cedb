"""The warning that a step runs unchanged, which all frontends use."""

from __future__ import annotations


class NothingSaved(UserWarning):
    """Warns that a step runs as it would without this package, or that its predicted peak rises because of copies that
    marks or segment budgets demand. The message gives the reason and, if there is one, a remedy."""
