"""Parts of `analysis/` and `frontends/jax/` import each other only as declared, without cycles."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter

import pytest

from recompute.test.imports import imported_by, imports_of, modules_in
from recompute.test.unit.test_layout import MAY_IMPORT

ARROWS: dict[str, dict[str, frozenset[str]]] = {
    "analysis": {
        "step": frozenset(),
        "request": frozenset({"step"}),
        "verify": frozenset({"step"}),
        "copies": frozenset({"step", "request"}),
        "memory": frozenset({"step", "request"}),
        "explain": frozenset({"step", "request", "copies", "memory"}),
    },
    "frontends/jax": {
        "annotations": frozenset(),
        "bridge": frozenset(),
        "messages": frozenset(),
        "keywords": frozenset({"messages"}),
        "compilation": frozenset({"keywords", "messages"}),
        "reports": frozenset({"bridge", "compilation", "messages"}),
        "lowering": frozenset({"annotations", "bridge", "compilation", "keywords", "messages", "reports"}),
        "mindspore": frozenset({"annotations"}),
        "paddle": frozenset({"annotations", "messages"}),
    },
}
"""What each room of a package imports of the others; imports for type checkers and inside functions are left out for
`frontends/jax`, whose report asks the step for its compiled forms."""

MODULES = modules_in(MAY_IMPORT)


@pytest.mark.parametrize("package", ARROWS)
def test_rooms_import_only_as_declared(package: str):
    depth = package.count("/") + 1
    entries = {room: set[str]() for room in ARROWS[package]}
    for path in MODULES:
        if path.startswith(f"{package}/") and path.count("/") > depth:
            room = path.split("/")[depth]
            targets = imported_by(path, MODULES, lazily=package == "analysis")
            rooms = {target.split("/")[depth] for target in targets if target.startswith(f"{package}/")}
            entries[room] |= rooms & ARROWS[package].keys() - {room}
    assert entries == ARROWS[package]
    TopologicalSorter(ARROWS[package]).prepare()


def test_analysis_modules_are_in_subpackages():
    assert [path for path in MODULES if path.startswith("analysis/") and path.count("/") == 1] == [
        "analysis/__init__.py"
    ]


def test_imports_have_no_cycles():
    TopologicalSorter({path: set(imported_by(path, MODULES, lazily=False)) - {path} for path in MODULES}).prepare()


def test_private_names_are_not_imported():
    private = [
        f"{path}:{entry.line}: {entry.name}"
        for path, source in MODULES.items()
        for entry in imports_of(ast.parse(source), ("recompute", *path.split("/")[:-1]))
        if entry.name.startswith("recompute.") and any(_is_private(part) for part in entry.name.split("."))
    ]
    assert private == []


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_no_module_only_forwards_names():
    """No module only forwards names, apart from the interfaces of packages."""
    assert [path for path, source in MODULES.items() if not path.endswith("__init__.py") and _forwards(source)] == []


def _forwards(source: str) -> bool:
    body = ast.parse(source).body
    return all(
        isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)
        or (isinstance(node, ast.Assign) and isinstance(node.value, ast.Name))
        for node in body
    )
