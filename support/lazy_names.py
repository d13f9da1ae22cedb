"""Lazy imports of a package's public names at their first use (PEP 562), so that importing the package is cheap.

    if TYPE_CHECKING:  # For type checkers and editors.
        from .driver.api import rewrite as rewrite

    __all__ = ["rewrite"]
    __getattr__, __dir__ = lazy_names(__name__, {"driver.api": "rewrite"})

A public name must differ from the names of the package's own modules, because importing the module `jit` sets the
attribute `jit` of the package to this module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from .suggestions import did_you_mean


def lazy_names(
    package: str, names: Mapping[str, str], modules: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package.

    The first access to a name imports its module and stores the value in the package. Several threads may access names
    at the same time: the import system executes each module once, and other threads wait for it.

    Args:
        package: The `__name__` of the package. The package must define `__all__`.
        names: The public names that each module of the package defines, separated by spaces.
        modules: The public modules of the package.
    """
    places = {name: module for module, listed in names.items() for name in listed.split()}
    public_modules = frozenset(modules)

    def __getattr__(name: str) -> Any:
        if name in public_modules:
            return import_module(f"{package}.{name}")
        if name not in places:
            # A test for a name with an underscore, such as `hasattr(module, "__path__")`, needs no suggestion.
            hint = "" if name.startswith("_") else did_you_mean(name, [*sys.modules[package].__all__, *public_modules])
            raise AttributeError(f"module '{package}' has no attribute '{name}'{hint}", name=name)
        value = getattr(import_module(f"{package}.{places[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        module = sys.modules[package]
        return sorted({*vars(module), *module.__all__, *public_modules})

    return __getattr__, __dir__
