"""Functions for files with several modules, and for modules inside modules."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp


def inner_modules(module: ModuleOp) -> list[ModuleOp]:
    """Return the modules directly inside a module."""
    return [op for op in module.ops if isinstance(op, ModuleOp)]


def named_modules(module: ModuleOp, prefix: str = "") -> Iterator[tuple[str, ModuleOp]]:
    """Yield the modules that contain functions, each with a prefix for the names of its functions.

    The prefix of an inner module is its name, as in `inner::`, or its index if it has no name, as in `0::`.
    """
    if any(isinstance(op, FuncOp) for op in module.ops):
        yield prefix, module
    for number, inner in enumerate(inner_modules(module)):
        yield from named_modules(inner, f"{prefix}{inner.sym_name.data if inner.sym_name else number}::")


def modules_with_functions(module: ModuleOp) -> list[ModuleOp]:
    """Return all modules that contain functions, among the module and its inner modules at any depth. If no module
    contains functions, return only the module."""
    return [named for _, named in named_modules(module)] or [module]
