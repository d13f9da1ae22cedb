"""The notebooks run from the first cell to the last, and are stored without outputs."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

nbformat: Any = pytest.importorskip("nbformat", reason="notebooks are read by nbformat")
nbclient: Any = pytest.importorskip("nbclient", reason="and run by nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("jax")

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def test_both_notebooks_are_found():
    assert [path.stem for path in NOTEBOOKS] == ["first_steps", "marks_and_policies"]


@pytest.mark.slow("marks_and_policies")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path):
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {}}).execute()
    shown = [output for cell in cells for output in cell.outputs]
    assert all(output.output_type != "error" for output in shown)
    assert any("recomputed" in str(output) for output in shown)
    if path.stem == "first_steps":
        pages = [output.data["text/html"] for output in shown if "text/html" in output.get("data", {})]
        assert len(pages) == 1 and "<!DOCTYPE html>" in unescape(pages[0]) and "temporaries" in pages[0]
