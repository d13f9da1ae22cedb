"""Private interfaces of JAX are used in a single module, which checks that they exist."""

from __future__ import annotations

import ast
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.internals import private
from recompute.test.imports import ROOT
from recompute.test.unit.frontends.jax.steps import batch, jax, mlp, weights

FOLDER = ROOT / "frontends" / "jax"


@pytest.mark.parametrize("index", range(len(private.MODULE_ATTRIBUTES)))
def test_renamed_module_attribute_is_refused(index: int, monkeypatch: pytest.MonkeyPatch):
    """The rewrite is refused if JAX has renamed an attribute that is needed."""
    module, name = private.MODULE_ATTRIBUTES[index]
    renamed = list(private.MODULE_ATTRIBUTES)
    renamed[index] = (module, f"{name}_of_old")
    monkeypatch.setattr(private, "MODULE_ATTRIBUTES", renamed)
    refused(f"{module}.{name}_of_old", monkeypatch)


@pytest.mark.parametrize(
    ("table", "index"),
    [*(("JITTED_ATTRIBUTES", index) for index in range(2)), *(("LOWERED_ATTRIBUTES", index) for index in range(3))],
)
def test_renamed_object_attribute_is_refused(table: str, index: int, monkeypatch: pytest.MonkeyPatch):
    paths = list(getattr(private, table))
    paths[index] += "_of_old"
    monkeypatch.setattr(private, table, paths)
    refused(paths[index], monkeypatch)


def refused(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert that the rewrite is refused before it starts, with the JAX versions and the remedy in the message."""

    def never(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("rewritten all the same")

    monkeypatch.setattr("recompute.frontends.jax.lowering.rewrite_lowered.rewrite", never)
    with pytest.raises(recompute.jax.UnsupportedJax) as error:
        recompute.jax.jit(mlp().step)(weights(), batch())
    for words in (missing, jax.__version__, "tested with jax 0.10.2", "pip install 'jax==0.10.2'"):
        assert words in str(error.value)


def test_only_private_module_uses_private_names():
    """No module of the interface accesses or imports a private name; `internals/private.py` does."""
    matches = [
        f"{path.name}: {ast.unparse(node)}"
        for path in FOLDER.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if uses_private_name(node)
    ]
    assert matches == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("lowered._lowering", True),
        ("import jax._src.core", True),
        ("from jax._src import core", True),
        ("from jax.core import _x", True),
        ("getattr(lowered, '_lowering')", True),
        ("import jaxlib", True),
        ("self._plain", False),
        ("x.__name__", False),
        ("getattr(x, '__name__')", False),
        ("from .private import check", False),
    ],
)
def test_access_to_private_names_is_detected(source: str, expected: bool):
    assert any(uses_private_name(node) for node in ast.walk(ast.parse(source))) == expected


def uses_private_name(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return is_private(node.attr) and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    if isinstance(node, ast.Import):
        return any(is_private(name.name) for name in node.names)
    if isinstance(node, ast.ImportFrom):
        return any(is_private(name) for name in (node.module or "", *(name.name for name in node.names)))
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and is_private(node.value)


def is_private(name: str) -> bool:
    parts = name.split(".")
    return parts[0] == "jaxlib" or any(part.startswith("_") and not part.startswith("__") for part in parts)
