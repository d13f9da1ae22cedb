"""The snippets of docs/torch.md behave as the page states."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the page is about PyTorch")
rt = pytest.importorskip("recompute.torch", reason="the PyTorch frontend is not there")

ROOT = Path(__file__).resolve().parents[4]
TEXT = (ROOT / "docs" / "torch.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def run(snippet: str, folder: Path):
    (folder / "snippet.py").write_text(snippet)
    return runpy.run_path(str(folder / "snippet.py"))


def test_page_has_three_snippets():
    assert len(SNIPPETS) == 3


def test_first_step_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    step = run(SNIPPETS[0], tmp_path)["step"]
    (graph,) = step.report().graphs
    assert graph.peak_bytes <= 0.6 * graph.plain_bytes and graph.copies
    assert "proved equal" in capsys.readouterr().out


def test_region_snippet_recomputes_segments(tmp_path: Path):
    (graph,) = run(SNIPPETS[1], tmp_path)["loss"].report().graphs
    assert graph.copies and graph.peak_bytes < graph.plain_bytes
    assert graph.extra_share == 0  # the products are saved


def test_impossible_budget_snippet_fails_as_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run(SNIPPETS[2], tmp_path)
    assert "BudgetNotKept" in capsys.readouterr().out


def test_table_of_options_names_existing_options():
    from recompute.frontends.torch.partition.options import OURS

    table = TEXT.split("| option |")[1].split("```")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(names) >= 12 and names <= OURS


def test_named_functions_exist():
    calls = set(re.findall(r"\brt\.(\w+)", TEXT))
    assert {"compile", "backend", "region"} <= calls
    assert all(hasattr(rt, call) for call in calls)


def test_links_resolve():
    for link in re.findall(r"\]\((?!http)([^)#]+)", TEXT):
        assert (ROOT / "docs" / link).exists(), link
