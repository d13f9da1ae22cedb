"""The layering inside `analysis/`: which part may import which, without cycles."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter

from recompute.test.imports import imported_by, imports_of, modules_in
from recompute.test.unit.test_layout import MAY_IMPORT

ARROWS: dict[str, frozenset[str]] = {
    "step": frozenset(),
    "request": frozenset({"step"}),
    "verify": frozenset({"step"}),
    "copies": frozenset({"step", "request"}),
    "memory": frozenset({"step", "request"}),
    "explain": frozenset({"step", "request", "copies", "memory"}),
}
"""What each room of `analysis/` imports of the others."""

MODULES = modules_in(MAY_IMPORT)


def test_the_rooms_of_analysis():
    found = {room: set[str]() for room in ARROWS}
    for path in MODULES:
        if path.startswith("analysis/") and path.count("/") > 1:
            rooms = (target.split("/")[1] for target in imported_by(path, MODULES) if target.startswith("analysis/"))
            found[path.split("/")[1]] |= {room for room in rooms if room != path.split("/")[1]}
    assert found == ARROWS
    assert len(ARROWS) <= 6 and sum(map(len, ARROWS.values())) <= 12


def test_nothing_stands_beside_the_rooms():
    assert [path for path in MODULES if path.startswith("analysis/") and path.count("/") == 1] == [
        "analysis/__init__.py"
    ]


def test_no_circles():
    TopologicalSorter({path: set(imported_by(path, MODULES, lazily=False)) - {path} for path in MODULES}).prepare()


def test_no_private_name_of_another_module():
    private = [
        f"{path}:{entry.line}: {entry.name}"
        for path, source in MODULES.items()
        for entry in imports_of(ast.parse(source), ("recompute", *path.split("/")[:-1]))
        if entry.name.startswith("recompute.") and any(_is_private(part) for part in entry.name.split("."))
    ]
    assert private == []


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_no_file_only_forwards():
    """Find no module that only forwards names, apart from the interfaces of packages."""
    assert [path for path, source in MODULES.items() if not path.endswith("__init__.py") and _forwards(source)] == []


def _forwards(source: str) -> bool:
    body = ast.parse(source).body
    return all(
        isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)
        or (isinstance(node, ast.Assign) and isinstance(node.value, ast.Name))
        for node in body
    )
