"""The snippets of docs/jax.md and of the pages below it (docs/jax_*.md), run as these pages describe."""

from __future__ import annotations

import re
import runpy
import warnings
from pathlib import Path

import pytest

import recompute

pytest.importorskip("jax", reason="the pages are about JAX")

from recompute.frontends.jax.keywords.keywords import OWN_KEYWORDS

PHASE_HINTS = {"primal_results", "primal_values", "cotangents"}

ROOT = Path(__file__).resolve().parents[2]
PAGES = {name: (ROOT / "docs" / f"{name}.md") for name in ("jax", "jax_selection", "jax_report", "jax_compilation")}
SNIPPETS = {name: re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL) for name, page in PAGES.items()}


def run(snippet: str, folder: Path) -> None:
    (folder / "snippet.py").write_text(snippet)
    runpy.run_path(str(folder / "snippet.py"))


def test_each_snippet_has_a_test():
    counts = {"jax": 3, "jax_selection": 1, "jax_report": 2, "jax_compilation": 1}
    assert {name: len(snippets) for name, snippets in SNIPPETS.items()} == counts


def test_first_step_snippet_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run(SNIPPETS["jax"][0], tmp_path)
    (ratio,) = re.findall(r"^temporaries .* (\S+)$", capsys.readouterr().out, re.MULTILINE)
    assert float(ratio) < 0.7


def test_decorator_snippet_recomputes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.NothingSaved)
        run(SNIPPETS["jax"][1], tmp_path)
    assert int(capsys.readouterr().out.splitlines()[-1]) > 0


def test_compilation_snippet_runs_the_smallest_variant(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run(SNIPPETS["jax_compilation"][0], tmp_path)
    first, *rest = capsys.readouterr().out.splitlines()
    sizes = {way: int(size) for size, way in (line.split(" ", 1) for line in rest)}
    assert len(sizes) == 2 and sizes[first.removeprefix("runs: ")] == min(sizes.values())
    assert "rewritten" in first


def test_selection_snippet_applies_marks(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run(SNIPPETS["jax_selection"][0], tmp_path)
    message = capsys.readouterr().out
    assert re.search(r"stablehlo.tanh in layer0, layer1 and 2 more, .*: the selection saves it", message, re.MULTILINE)
    assert "recomputed: " in message


def test_export_snippet_exports_the_rewritten_step(tmp_path: Path):
    with pytest.warns(recompute.jax.BarriersDropped):
        run(SNIPPETS["jax"][2], tmp_path)


def test_report_snippet_warns(tmp_path: Path):
    with pytest.warns(recompute.jax.NothingSaved, match="<lambda> computes no gradient, .* take the gradient inside: "):
        run(SNIPPETS["jax_report"][0], tmp_path)


def test_disable_snippet_runs_the_plain_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.NothingSaved)
        run(SNIPPETS["jax_report"][1], tmp_path)
    assert "Array(" in capsys.readouterr().out


def test_readme_lines_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The first lines of the README run on the step of this page."""
    readme = (ROOT / "README.md").read_text()
    (snippet,) = [match for match in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "train_step" in match]
    assert len([line for line in snippet.splitlines() if line]) <= 5
    before = SNIPPETS["jax"][0][: SNIPPETS["jax"][0].index("step = recompute")]
    run(f"{before}state, batch = weights, x\n{snippet.replace('state, loss', 'loss, state')}", tmp_path)
    (ratio,) = re.findall(r"^temporaries .* (\S+)$", capsys.readouterr().out, re.MULTILINE)
    assert float(ratio) < 0.7


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.stem)
def test_names_on_each_page_exist(page: Path):
    for name in set(re.findall(r"recompute\.jax\.(\w+)", page.read_text())):
        assert hasattr(recompute.jax, name), name


def test_option_tables_name_existing_options():
    names = set[str]()
    for name in ("jax", "jax_selection"):
        rows = re.findall(r"^\| (`[^|]*) \|", PAGES[name].read_text(), re.MULTILINE)
        names |= {option for row in rows for option in re.findall(r"`(\w+)(?:=[^`]*)?`", row)}
    assert (
        OWN_KEYWORDS - names
        <= {"names", "outputs", "exclude", "collectives", "preserve_rng_state", "repeatable"} | PHASE_HINTS
    )
