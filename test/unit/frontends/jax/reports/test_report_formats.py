"""Reports as files: HTML, text, JSON and charts."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import recompute
from recompute.test.unit.frontends.jax.steps import batch, forward, mlp, weights


def test_report_is_saved_as_html_text_or_json(tmp_path: Path):
    report = recompute.jax.jit(mlp().step).report(weights(), batch())
    for suffix, start in ((".html", "<!DOCTYPE html>"), (".txt", "step: "), (".json", "{")):
        report.save(tmp_path / f"step{suffix}")
        assert (tmp_path / f"step{suffix}").read_text().startswith(start)
    facts = json.loads((tmp_path / "step.json").read_text())
    assert facts["verdict"] == str(report).splitlines()[0]
    assert facts["chosen"]["temporaries"] == report.chosen.temporaries and len(facts["kept"]) == len(report.kept)
    for name in ("step.png", "step"):
        with pytest.raises(
            ValueError,
            match=rf"'.*{name}': expected one of the suffixes \.html, \.svg \(with matplotlib\), "
            r"\.txt, \.json$",
        ):
            report.save(tmp_path / name)


def test_report_draws_a_chart(tmp_path: Path):
    pytest.importorskip("matplotlib", reason="charts")
    recompute.jax.jit(mlp().step).report(weights(), batch()).save(tmp_path / "step.svg")
    assert "<svg" in (tmp_path / "step.svg").read_text()
    with pytest.raises(ValueError, match="no chart, since nothing is recomputed"):
        recompute.jax.jit(forward()).report(weights(), batch()).save(tmp_path / "plain.svg")


def test_chart_without_matplotlib_names_the_formats_of_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    report = recompute.jax.jit(mlp().step).report(weights(), batch())
    message = re.escape("'xdsl-recompute[plot]'; the formats .html, .txt, .json do not")
    with pytest.raises(ImportError, match=rf"^\.svg needs matplotlib: .*{message}$"):
        report.save(tmp_path / "step.svg")
