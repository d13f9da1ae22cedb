"""The parts of a package, its rooms, import each other only as declared, without cycles."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter

import pytest

from recompute.test.imports import imported_by, imports_of, modules_in
from recompute.test.unit.test_layout import MAY_IMPORT

TOP = "."
"""The modules of a package outside all rooms, as one room. A package without it in `ARROWS` leaves them out."""
ARROWS: dict[str, dict[str, frozenset[str]]] = {
    "dialects": {
        "constants": frozenset(),
        "stablehlo": frozenset({"constants"}),
        "chlo": frozenset({"stablehlo"}),
        "sdy": frozenset({"stablehlo"}),
        TOP: frozenset({"stablehlo", "chlo", "sdy"}),
    },
    "mlir_io": {
        "syntax": frozenset(),
        "workarounds": frozenset({"syntax"}),
        TOP: frozenset({"syntax", "workarounds"}),
    },
    "analysis": {
        "step": frozenset(),
        "request": frozenset({"step"}),
        "verify": frozenset({"step"}),
        "copies": frozenset({"step", "request"}),
        "memory": frozenset({"step", "request"}),
        "forecasts": frozenset({"step", "memory"}),
        "explain": frozenset({"step", "copies", "memory"}),
    },
    "analysis/memory": {
        TOP: frozenset(),
        "xla": frozenset({TOP}),
    },
    "transforms": {
        "attributes": frozenset(),
        "calls": frozenset(),
        "per_device": frozenset(),
        "plans": frozenset({"per_device"}),
        "rolled": frozenset({"plans"}),
        "outlining": frozenset({"per_device", "rolled"}),
        TOP: frozenset({"attributes", "calls", "plans", "outlining"}),
        "preparation": frozenset({TOP, "calls"}),
    },
    "planning": {
        TOP: frozenset(),
        "solvers": frozenset({TOP}),
        "by_segment": frozenset({TOP, "solvers"}),
    },
    "planning/solvers": {
        "kernels": frozenset(),
        TOP: frozenset({"kernels"}),
    },
    "rules": {
        TOP: frozenset(),
        "costs": frozenset({TOP}),
    },
    "interpreters": {
        "kernels": frozenset(),
        TOP: frozenset({"kernels"}),
    },
    "search": {
        "local_choices": frozenset(),
        TOP: frozenset({"local_choices"}),
        "choice": frozenset({TOP, "local_choices"}),
        "candidate_plans": frozenset({TOP, "choice", "local_choices"}),
        "budget": frozenset({TOP, "candidate_plans"}),
    },
    "proof": {
        "operations": frozenset(),
        "expressions": frozenset({"operations"}),
        "translation": frozenset({"operations", "expressions"}),
        "loop_rules": frozenset({"operations", "expressions", "translation"}),
        "verdicts": frozenset({"operations", "expressions"}),
        TOP: frozenset({"operations", "expressions", "translation", "loop_rules", "verdicts"}),
    },
    "driver": {
        "pipelines": frozenset(),
        "verification": frozenset(),
        "inspection": frozenset(),
        "rewrites": frozenset({"inspection", "pipelines", "verification"}),
        "cache": frozenset({"rewrites"}),
        "budgets": frozenset({"cache", "inspection", "verification"}),
        TOP: frozenset({"inspection", "pipelines", "rewrites", "verification"}),
    },
    "frontends/jax": {
        "annotations": frozenset(),
        "internals": frozenset(),
        "messages": frozenset(),
        "bridge": frozenset({"internals"}),
        "keywords": frozenset({"internals", "messages"}),
        "compilation": frozenset({"internals", "keywords", "messages"}),
        "reports": frozenset({"bridge", "compilation", "internals", "messages"}),
        "lowering": frozenset({"annotations", "bridge", "compilation", "internals", "keywords", "messages", "reports"}),
        "mindspore": frozenset({"annotations", "messages"}),
        "paddle": frozenset({"annotations", "messages"}),
        TOP: frozenset(
            {"annotations", "compilation", "internals", "keywords", "lowering", "messages", "mindspore", "paddle"}
            | {"reports"}
        ),
    },
    "frontends/torch": {
        "fx": frozenset(),
        "program_order": frozenset({"fx"}),
        "reports": frozenset({"fx"}),
        "partition": frozenset({"fx", "program_order", "reports"}),
        "inductor": frozenset({"fx", "partition", "program_order", "reports"}),
        TOP: frozenset({"fx", "inductor", "partition", "program_order", "reports"}),
    },
    "tools": {
        "diagnostics": frozenset(),
        "file_access": frozenset(),
        "help": frozenset(),
        "instrumentation": frozenset({"file_access"}),
        "arguments": frozenset({"diagnostics", "file_access", "help", "instrumentation"}),
        "plan": frozenset({"arguments", "diagnostics", "file_access", "help"}),
        "runs": frozenset({"arguments", "diagnostics", "file_access", "instrumentation"}),
        TOP: frozenset({"arguments", "diagnostics", "file_access", "help", "instrumentation", "plan", "runs"}),
    },
}
"""What each room of a package imports of the others, including imports for type checkers and inside functions."""

MODULES = modules_in(MAY_IMPORT)


@pytest.mark.parametrize("package", ARROWS)
def test_rooms_import_only_as_declared(package: str):
    entries = {room: set[str]() for room in ARROWS[package]}
    for path in MODULES:
        if path.startswith(f"{package}/") and (room := _room_of(path, package)) in entries:
            targets = imported_by(path, MODULES)
            rooms = {_room_of(target, package) for target in targets if target.startswith(f"{package}/")}
            entries[room] |= rooms & ARROWS[package].keys() - {room}
    assert entries == ARROWS[package]
    TopologicalSorter(ARROWS[package]).prepare()


def _room_of(path: str, package: str) -> str:
    """Return the room of a module: the name of its folder in the package, or `TOP`."""
    folder, _, rest = path.removeprefix(f"{package}/").partition("/")
    return folder if rest else TOP


def test_analysis_modules_are_in_subpackages():
    assert [path for path in MODULES if path.startswith("analysis/") and path.count("/") == 1] == [
        "analysis/__init__.py"
    ]


def test_imports_have_no_cycles():
    """Imports have no cycles, including those for type checkers and inside functions."""
    imports = {path: set(imported_by(path, MODULES)) - {path} for path in MODULES}
    # An operation refers to its patterns inside a method, as in xDSL.
    imports["dialects/recompute.py"] -= {"dialects/canonicalization.py"}
    TopologicalSorter(imports).prepare()


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
