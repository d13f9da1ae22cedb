"""Import of the scripts in `benchmarks/`, which is not a package, as modules for tests."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


def script(name: str) -> Any:
    """Return the module `benchmarks/<name>.py`. It may import its neighbours, as when it runs as a script."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))
