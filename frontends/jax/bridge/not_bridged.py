"""The only error that the bridge raises."""

from __future__ import annotations


class NotBridged(Exception):
    """A module cannot be converted without its text; the message has the reason."""
