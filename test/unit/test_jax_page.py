"""The snippets of docs/jax.md do what the page says."""

from __future__ import annotations

import re
import runpy
import warnings
from pathlib import Path

import pytest

import recompute

pytest.importorskip("jax", reason="the page is about JAX")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "jax.md"
TEXT = PAGE.read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def run(snippet: str, folder: Path) -> None:
    (folder / "snippet.py").write_text(snippet)
    runpy.run_path(str(folder / "snippet.py"))


def test_there_are_six():
    assert len(SNIPPETS) == 6


def test_the_first_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run(SNIPPETS[0], tmp_path)
    (ratio,) = re.findall(r"^temporaries .* (\S+)$", capsys.readouterr().out, re.MULTILINE)
    assert float(ratio) < 0.7


def test_the_decorator(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.NothingSaved)
        run(SNIPPETS[1], tmp_path)
    assert int(capsys.readouterr().out.splitlines()[-1]) > 0


def test_the_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run(SNIPPETS[2], tmp_path)
    first, *rest = capsys.readouterr().out.splitlines()
    sizes = {way: int(size) for size, way in (line.split(" ", 1) for line in rest)}
    assert len(sizes) == 2 and sizes[first.removeprefix("runs: ")] == min(sizes.values())
    assert "rewritten" in first


def test_the_marks(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run(SNIPPETS[3], tmp_path)
    said = capsys.readouterr().out
    assert re.search(r"stablehlo.tanh in layer0, layer1 and 2 more, .*: the selection saves it", said, re.MULTILINE)
    assert "computed again: " in said


def test_the_warning(tmp_path: Path):
    with pytest.warns(recompute.jax.NothingSaved, match="<lambda> computes no gradient, .* take the gradient inside: "):
        run(SNIPPETS[5], tmp_path)


def test_the_off_switch(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.NothingSaved)
        run(SNIPPETS[4], tmp_path)
    assert "Array(" in capsys.readouterr().out


def test_the_line_in_the_readme(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A new user's first lines, on the step of this page."""
    readme = (PAGE.parents[1] / "README.md").read_text()
    (snippet,) = [one for one in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "train_step" in one]
    assert len([line for line in snippet.splitlines() if line]) <= 5
    before = SNIPPETS[0][: SNIPPETS[0].index("step = recompute")]
    run(f"{before}state, batch = weights, x\n{snippet.replace('state, loss', 'loss, state')}", tmp_path)
    (ratio,) = re.findall(r"^temporaries .* (\S+)$", capsys.readouterr().out, re.MULTILINE)
    assert float(ratio) < 0.7


def test_what_it_names_is_there():
    for name in set(re.findall(r"recompute\.jax\.(\w+)", TEXT)):
        assert hasattr(recompute.jax, name), name
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", TEXT):
        assert (PAGE.parent / link).exists(), link
