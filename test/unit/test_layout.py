"""Packages import each other only as the layering permits, and all packages are listed."""

from __future__ import annotations

import ast
import tomllib

import pytest

from recompute.test.imports import ROOT, imported_by, imports_of, modules_in, reachable

BELOW = frozenset({"support", "dialects", "mlir_io", "rules", "planning", "options", "analysis"})
MAY_IMPORT: dict[str, frozenset[str]] = {
    "support": frozenset(),
    "dialects": frozenset({"support"}),
    "mlir_io": frozenset({"support", "dialects"}),
    "planning": frozenset({"support"}),
    "rules": frozenset({"support", "dialects", "mlir_io"}),
    "options": frozenset({"support", "dialects", "mlir_io", "rules", "planning"}),
    "analysis": frozenset({"support", "dialects", "mlir_io", "rules", "planning", "options"}),
    "transforms": BELOW,
    "search": BELOW | {"transforms"},
    "rewriting": BELOW | {"transforms", "search"},
    "reports": BELOW,
    "proof": frozenset({"support", "dialects", "mlir_io"}),
    "interpreters": frozenset({"support", "dialects", "mlir_io", "rules"}),
    "driver": BELOW | {"transforms", "search", "rewriting", "reports", "proof", "interpreters"},
    "frontends": BELOW | {"transforms", "search", "rewriting", "reports", "proof", "interpreters", "driver"},
    "tools": BELOW | {"transforms", "search", "rewriting", "reports", "proof", "interpreters", "driver", "frontends"},
}
# Modules that differ from their folder.
EXCEPTIONS: dict[str, frozenset[str]] = {
    "interpreters/meter.py": frozenset({"support", "dialects", "mlir_io", "rules", "analysis"}),
}
# The checker believes nothing that the passes believe: neither it nor what it imports may see their facts.
CHECKER = "proof/prove.py"
CHECKER_MAY_REACH = frozenset({"support", "dialects", "mlir_io", "proof"})
NOT_PACKAGES = frozenset({"test", "examples", "benchmarks", "docs", "typings", "build", "dist", "site"})
# The methods that compare alternatives. Analyses and transforms must leave them to the search.
CHOOSING = (
    *("planning/calibrated_search.py", "planning/min_cut.py", "planning/solvers/"),
    *("planning/by_segment/by_structure.py", "planning/by_segment/keep_", "planning/by_segment/segment_limits.py"),
)
ERRORS_OF_PLANNERS = "planning/solvers/result.py"
HEAVY = frozenset({"jax", "jaxlib", "torch", "matplotlib"})
MAY_BE_HEAVY = frozenset({"frontends", "reports"})
# A frontend is a package that is imported lazily: it may import its own framework at once.
OWN_FRAMEWORK: dict[str, frozenset[str]] = {
    "frontends/jax": frozenset({"jax", "jaxlib"}),
    "frontends/torch": frozenset({"torch", "functorch"}),
}


def package_of(path: str) -> tuple[str, ...]:
    return ("recompute", *path.split("/")[:-1])


def violations(path: str, source: str) -> list[str]:
    """Return the forbidden imports of the module at `path`, which is relative to the root, one line each."""
    folder = path.split("/")[0] if "/" in path else ""
    package = package_of(path)
    allowed = EXCEPTIONS.get(path, MAY_IMPORT.get(folder, frozenset(MAY_IMPORT)))
    own = OWN_FRAMEWORK.get("/".join(path.split("/")[:2]), frozenset[str]())
    matches: list[str] = []
    for entry in imports_of(ast.parse(source), package):
        first, second, *_ = (*entry.name.split("."), "")
        if first == "recompute" and second in MAY_IMPORT.keys() - allowed - {folder}:
            matches.append(f"{path}:{entry.line}: must not import {second}")
        if first in HEAVY and folder not in MAY_BE_HEAVY:
            matches.append(f"{path}:{entry.line}: must not import {first}")
        elif first in HEAVY - own and not entry.lazy:
            matches.append(f"{path}:{entry.line}: must import {first} inside a function")
    return matches


def test_imports_point_one_way():
    modules = modules_in(MAY_IMPORT)
    assert [line for path, source in modules.items() for line in violations(path, source)] == []


def test_only_pipelines_and_tools_import_the_universe():
    """`universe.py` loads passes and targets by name, from all packages."""
    importers = {path for path, module in modules_in(MAY_IMPORT).items() if _imports_universe(path, module)}
    assert {path for path in importers if not path.startswith(("driver/pipelines/", "tools/"))} == set()


def _imports_universe(path: str, source: str) -> bool:
    names = (entry.name for entry in imports_of(ast.parse(source), package_of(path)))
    return any(f"{name}.".startswith("recompute.universe.") for name in names)


def test_checker_imports_nothing_from_passes():
    reached = reachable(CHECKER, modules_in(MAY_IMPORT))
    assert {path: by for path, by in reached.items() if path.split("/")[0] not in CHECKER_MAY_REACH} == {}


def test_analyses_and_transforms_import_no_method_that_chooses():
    modules = modules_in(MAY_IMPORT)
    choosing = [
        f"{path}: imports {target}"
        for path in modules
        if path.startswith(("analysis/", "transforms/"))
        for target in imported_by(path, modules)
        if target.startswith(CHOOSING) and target != ERRORS_OF_PLANNERS
    ]
    assert choosing == []


def test_reachable_modules_follow_imports():
    modules = {
        CHECKER: "from . import terms\nfrom ..dialects.recompute import Names",
        "proof/terms.py": "def f():\n  from recompute.rules.cost import flops",
        "interpreters/meter.py": "",
        "dialects/recompute.py": "import numpy",
        "rules/cost.py": "",
    }
    reached = reachable(CHECKER, modules)
    assert reached.keys() == modules.keys() - {"interpreters/meter.py"}
    assert reached["rules/cost.py"] == "proof/terms.py"


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("dialects/recompute.py", "from ..rules import cost", "dialects/recompute.py:1: must not import rules"),
        ("dialects/stablehlo/ops.py", "from ... import rules", "dialects/stablehlo/ops.py:1: must not import rules"),
        ("rules/cost.py", "import recompute.analysis.memory.timeline", "rules/cost.py:1: must not import analysis"),
        ("planning/solve.py", "def f():\n  from ..dialects import x", "planning/solve.py:2: must not import dialects"),
        ("analysis/order.py", "from recompute import transforms", "analysis/order.py:1: must not import transforms"),
        ("transforms/emit.py", "from ..search import choose", "transforms/emit.py:1: must not import search"),
        ("search/pool.py", "from ..rewriting import rewrite", "search/pool.py:1: must not import rewriting"),
        ("reports/svg.py", "from ..transforms.clone import clone", "reports/svg.py:1: must not import transforms"),
        ("interpreters/numpy.py", "from ..analysis import x", "interpreters/numpy.py:1: must not import analysis"),
        ("frontends/jax/jitted.py", "from ...tools import x", "frontends/jax/jitted.py:1: must not import tools"),
        ("frontends/jax/jitted.py", "import torch", "frontends/jax/jitted.py:1: must import torch inside a function"),
        ("frontends/jax.py", "import jax", "frontends/jax.py:1: must import jax inside a function"),
        (
            "frontends/torch/partition/joint_graph_step.py",
            "import jax",
            "frontends/torch/partition/joint_graph_step.py:1: must import jax inside a function",
        ),
        ("frontends/__init__.py", "import jax", "frontends/__init__.py:1: must import jax inside a function"),
        ("driver/jax/api.py", "import jax", "driver/jax/api.py:1: must not import jax"),
        (
            "reports/svg.py",
            "if True:\n  import matplotlib",
            "reports/svg.py:2: must import matplotlib inside a function",
        ),
        ("tools/opt.py", "def f():\n  import jax", "tools/opt.py:2: must not import jax"),
        ("universe.py", "import torch", "universe.py:1: must not import torch"),
    ],
)
def test_forbidden_import_is_detected(path: str, source: str, expected: str):
    assert violations(path, source) == [expected]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("rules/cost.py", "from .. import dialects\nfrom . import views\nimport numpy\nimport recompute.dialects"),
        ("interpreters/meter.py", "from ..analysis.memory.timeline import timeline"),
        ("rewriting/plan.py", "from ..planning import solve\nfrom ..search import choose"),
        ("reports/svg.py", "if TYPE_CHECKING:\n  import matplotlib\ndef f():\n  import matplotlib"),
        ("universe.py", "from .transforms import passes\nfrom .tools import main"),
        ("frontends/jax/jitted.py", "import jax\nfrom jaxlib.mlir import ir\ndef f():\n  import torch"),
    ],
)
def test_allowed_import_is_accepted(path: str, source: str):
    assert violations(path, source) == []


def test_framework_imports_are_lazy():
    """A module that only forwards to its frontend imports no framework at its top."""
    eager = [
        f"{path}:{entry.line}: imports {entry.name} at once"
        for path, source in modules_in(MAY_IMPORT).items()
        for entry in imports_of(ast.parse(source), package_of(path))
        if not entry.lazy and _is_framework(entry.name) and not path.startswith("frontends/")
    ]
    assert eager == []


def _is_framework(name: str) -> bool:
    return any(f"{name}.".startswith(f"recompute.{folder.replace('/', '.')}.") for folder in OWN_FRAMEWORK)


def test_every_package_is_listed():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {path.rpartition("/")[0] for path in modules_in(MAY_IMPORT)}
    assert sorted(listed) == sorted(".".join(filter(None, ("recompute", *folder.split("/")))) for folder in folders)


def test_every_folder_with_sources_has_a_rule():
    top = {path.relative_to(ROOT).parts[0] for path in ROOT.glob("*/**/*.py")}
    assert {name for name in top if not name.startswith(".")} <= MAY_IMPORT.keys() | NOT_PACKAGES


def test_every_folder_of_unit_tests_is_named_after_a_package():
    tests = ROOT / "test" / "unit"
    folders = {path.parent.relative_to(tests) for path in tests.glob("*/**/test_*.py")}
    assert sorted(str(folder) for folder in folders if not any((ROOT / folder).glob("*.py"))) == []
