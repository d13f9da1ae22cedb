"""Imports the modules in `benchmarks/` for tests, as `python -m recompute.benchmarks.<name>` finds them."""

from __future__ import annotations

import importlib
from typing import Any


def script(name: str) -> Any:
    """Return the module `benchmarks/<name>.py`."""
    return importlib.import_module(f"recompute.benchmarks.{name}")
