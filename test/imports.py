"""Imports of the project's own modules, read from their source."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Import:
    name: str  # absolute and dotted: "recompute.rules.cost", "jax.numpy"
    line: int
    lazy: bool  # inside a function, or for the type checker only


def imports_of(node: ast.AST, package: tuple[str, ...], lazy: bool = False) -> Iterator[Import]:
    """Yield every import below `node`, part of a module in `package`, with relative names made absolute."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, lazy) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = package[: len(package) - child.level + 1] if child.level else ()
            module = ".".join((*base, *filter(None, [child.module])))
            yield from (Import(f"{module}.{alias.name}", child.lineno, lazy) for alias in child.names)
        else:
            yield from imports_of(child, package, lazy or is_lazy(child))


def is_lazy(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def imported_by(path: str, modules: Mapping[str, str], lazily: bool = True) -> Iterator[str]:
    """Yield the paths of the modules that the one at `path` imports. `lazily`: include imports inside functions."""
    package = ("recompute", *path.split("/")[:-1])
    for entry in imports_of(ast.parse(modules[path]), package):
        parts = entry.name.split(".")[1:]
        candidates = (
            "/".join(parts) + ".py",
            "/".join(parts[:-1]) + ".py",
            "/".join((*parts, "__init__.py")),
            "/".join((*parts[:-1], "__init__.py")),
        )
        target = next((name for name in candidates if name in modules), None)
        if entry.name.startswith("recompute.") and target is not None and (lazily or not entry.lazy):
            yield target


def reachable(start: str, modules: Mapping[str, str]) -> dict[str, str]:
    """Return the modules that `start` imports, directly or indirectly, each with a module that imports it.

    `modules`: source by path.
    """
    entries = {start: ""}
    waiting = [start]
    while waiting:
        path = waiting.pop()
        for target in imported_by(path, modules):
            if target not in entries:
                entries[target] = path
                waiting.append(target)
    return entries


def modules_in(folders: Iterable[str]) -> dict[str, str]:
    """Return the source by path of the modules in the folders and of those at the root."""
    paths = [
        *(path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))),
        *sorted(ROOT.glob("*.py")),
    ]
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}
