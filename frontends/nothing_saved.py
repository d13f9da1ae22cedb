"""The warning that a step runs unchanged, which all frontends use."""

from __future__ import annotations


class NothingSaved(UserWarning):
    """Warns that a step runs as it would without this package. The message gives the reason, and a remedy if there is
    one."""
