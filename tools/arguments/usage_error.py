"""The error for an invalid command line."""

from __future__ import annotations


class UsageError(Exception):
    """The error for an invalid command line, for which the exit code is 2."""
