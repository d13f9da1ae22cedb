"""Import hook for `import recompute.jax`, `.eqx`, `.nnx` and `.torch`: frontends as submodules of the package.

A folder `jax` or `torch` at the root of the repository would shadow the framework in scripts that run from there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from . import frontend

FRONTENDS = {"jax": "jax", "eqx": "jax.eqx", "nnx": "jax.nnx", "torch": "torch"}
"""The public submodules of the package, each with the path of its module in this folder."""
_ROOT = __name__.rpartition(".frontends")[0]


# The base classes of `importlib.abc` would take longer to import than everything else that `import recompute` needs.
class FrontendFinder:
    """An import finder for `recompute.jax`, `recompute.torch` and their submodules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a frontend or of a module in it; None for any other module."""
        name = fullname.removeprefix(f"{_ROOT}.")
        if name == fullname or name.partition(".")[0] not in FRONTENDS:
            return None
        loader: Any = _AliasLoader(name)
        return ModuleSpec(fullname, loader, is_package=True)


class _AliasLoader:
    """A loader that makes the module object of a frontend available under a second, public name."""

    def __init__(self, name: str):
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module under its own name. Raises `ImportError`, with a remedy, if the framework is missing."""
        name, _, submodule = self._name.partition(".")
        place = FRONTENDS[name]
        module = frontend(place.partition(".")[0])
        if submodule or "." in place:
            module = import_module(f".{place}.{submodule}".rstrip("."), __package__)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec, which the import system has replaced with the spec of the alias."""
        module.__spec__ = self._spec


def install_finder() -> None:
    """Install the finder ahead of Python's default finder, which would load submodules twice, under two names."""
    if not any(isinstance(finder, FrontendFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, FrontendFinder())
