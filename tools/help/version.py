"""The answer to `--version`."""

from __future__ import annotations

from importlib.metadata import version

from ... import __version__


def version_of(tool: str) -> str:
    """Return the line that `--version` prints."""
    return f"{tool} {__version__} (xdsl {version('xdsl')})"
