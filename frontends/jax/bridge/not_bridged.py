"""The one error of the bridge."""

from __future__ import annotations


class NotBridged(Exception):
    """Something cannot cross without text; the words say what."""
