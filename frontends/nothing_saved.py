"""The warning of every frontend that a step runs unchanged."""

from __future__ import annotations


class NothingSaved(UserWarning):
    """A step runs as it would without this package; the message has the reason, and a remedy if there is one."""
