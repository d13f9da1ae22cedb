"""`import recompute.jax`: a frontend as a submodule of the package, though its folder is `frontends/jax`.

A folder `jax` at the root of the repository would shadow the framework in scripts that run from there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from typing_extensions import override

from . import frontend

FRONTENDS = ("jax",)
_ROOT = __name__.rpartition(".frontends")[0]


class FrontendFinder(MetaPathFinder):
    """Finds `recompute.jax` and its submodules."""

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        rest = fullname.removeprefix(f"{_ROOT}.")
        if rest == fullname or rest.partition(".")[0] not in FRONTENDS:
            return None
        return ModuleSpec(fullname, _Alias(rest), is_package=True)


class _Alias(Loader):
    """Loads the module of a frontend, which is one object under both names. Raises `ImportError`, with the remedy,
    where the framework is not installed."""

    def __init__(self, name: str):
        self._name = name

    @override
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        framework, _, rest = self._name.partition(".")
        module = frontend(framework)
        if rest:
            module = import_module(f".{self._name}", __package__)
        self._spec = module.__spec__
        return module

    @override
    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # The import system has put the one of the alias there.


def install() -> None:
    """Put the finder first: the one of the import system would load submodules a second time, under another name."""
    if not any(isinstance(finder, FrontendFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, FrontendFinder())
