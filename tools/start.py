"""Entry points of the console scripts. They answer `--version` without loading a dialect."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import version

from .. import __version__


def opt() -> int:
    return _start("recompute-opt")


def check() -> int:
    return _start("recompute-check")


def run() -> int:
    return _start("recompute-run")


def plan() -> int:
    return _start("recompute-plan")


def version_of(tool: str) -> str:
    """Return the line that `--version` prints."""
    return f"{tool} {__version__} (xdsl {version('xdsl')})"


def _start(tool: str) -> int:
    if sys.argv[1:] in (["--version"], ["-v"]):
        print(version_of(tool))
        return 0
    return import_module(f".{tool.replace('-', '_')}", __package__).main()
