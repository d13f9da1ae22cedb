"""Examples of MindSpore's pages, which give the documented results."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import recompute
from recompute.test.imports import ROOT

pytestmark = pytest.mark.slow

pytest.importorskip("jax", reason="the examples are written in JAX")
pytest.importorskip("matplotlib", reason="they draw a picture")


def load() -> Any:
    spec = importlib.util.spec_from_file_location("mindspore_calls", ROOT / "examples" / "mindspore_calls.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_api_page_example_gives_the_documented_gradient():
    with pytest.warns(recompute.jax.NothingSaved):
        result = load().first_example()
    assert result.tolist() == [[[[2.0, 4.0], [4.0, 8.0]]] * 2] * 2


@pytest.mark.slow
def test_tutorial_net_trains(tmp_path: Path):
    sizes = load().tutorial(3, tmp_path, heads=2)
    assert sizes["recompute"] < 0.75 * sizes["plain"]
    assert sizes["recompute"] <= 1.02 * sizes["jax.checkpoint"]
    assert "</svg>" in (tmp_path / "tutorial.memory.svg").read_text()
