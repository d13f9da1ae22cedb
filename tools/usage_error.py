"""The error of a wrong command line."""

from __future__ import annotations


class UsageError(Exception):
    """The command line is wrong: exit code 2."""
