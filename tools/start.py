"""Entry points of the console scripts, which answer `--version` without loading a dialect."""

from __future__ import annotations

import sys
from importlib import import_module

from .help.version import version_of


def opt() -> int:
    return _start("recompute-opt")


def check() -> int:
    return _start("recompute-check")


def run() -> int:
    return _start("recompute-run")


def plan() -> int:
    return _start("recompute-plan")


def _start(tool: str) -> int:
    if sys.argv[1:] in (["--version"], ["-v"]):
        print(version_of(tool))
        return 0
    return import_module(f".{tool.replace('-', '_')}", __package__).main()
