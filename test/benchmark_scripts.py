"""The scripts of `benchmarks/`, which is no package, as modules for tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


def script(name: str) -> Any:
    """The module that `benchmarks/<name>.py` makes."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up here.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
