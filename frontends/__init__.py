"""Frontends: one package per framework, imported on first use."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def frontend(name: str) -> ModuleType:
    """Return the frontend package for a framework. Raises `ImportError`, with a remedy, if the framework is not
    installed."""
    try:
        return import_module(f".{name}", __package__)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ImportError(f"recompute.{name} needs {name}: pip install 'xdsl-recompute[{name}]'") from error
