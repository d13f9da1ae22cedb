"""Statements in the README, the tutorial and the generated pages agree with the behaviour of the tools."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from recompute.analysis.step.order import functions_of
from recompute.benchmarks.unseen import savings_page
from recompute.options.recompute_options import RecomputeOptions
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.search.list_schedules import lowest_peak_schedule
from recompute.test.examples import PEAK_IN_UPDATE, original, peaks_after, peaks_before, recomputed
from recompute.test.unit.transforms.test_hard_cases import outputs_too
from recompute.tools.recompute_check import verdict
from recompute.tools.recompute_opt import main

ROOT = Path(__file__).resolve().parents[2]
TIED = "tied.large.mlir"
README = (ROOT / "README.md").read_text()
CONCEPTS = (ROOT / "docs" / "concepts.md").read_text()
REGIONS = (ROOT / "docs" / "regions.md").read_text()
TUTORIAL = (ROOT / "docs" / "tutorial_mlir.md").read_text()
BEFORE, AFTER = re.findall(r"```mlir\n(.*?)```", TUTORIAL, re.DOTALL)
(PASSES,) = re.findall(r"^\$ recompute-opt step.mlir -p (\S+) --no-print-debuginfo$", TUTORIAL, re.MULTILINE)


def test_readme_example_prints_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "step.mlir"
    source.write_text(BEFORE)
    assert main([str(source), "-p", PASSES, "--no-print-debuginfo"]) == 0
    captured = capsys.readouterr()
    assert captured.out == AFTER
    assert "segment 'block1' is not recomputed: the backward pass begins with these values" in captured.err
    assert main([str(source), "-p", "recompute"]) == 0
    assert "recompute.depend" not in (lowered := capsys.readouterr().out)
    assert "stablehlo.optimization_barrier" in lowered


def test_structured_example_prints_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = re.findall(r"```mlir\n(.*?)```", REGIONS, re.DOTALL)
    (passes,) = re.findall(r"`recompute-opt -p (\S+)`", REGIONS)
    source = tmp_path / "step.mlir"
    source.write_text(before)
    assert main([str(source), "-q", "-p", passes]) == 0
    captured = capsys.readouterr()
    assert captured.out == after
    (remark,) = captured.err.splitlines()
    assert "the marked operations cost 2048 FLOPs more and lower no peak" in remark


def made_by(script: str, text: str) -> str:
    """Return the text that a script of docs/ generates for an expression."""
    code = f"import {script} as g; print({text}, end='')"
    completed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "docs", capture_output=True, text=True, check=True
    )
    return completed.stdout


def test_reference_page_is_up_to_date() -> None:
    result = made_by("generate_reference", "g.reference()")
    assert (ROOT / "docs" / "reference.md").read_text() == result, "run python docs/generate_reference.py"


def test_operations_page_is_up_to_date() -> None:
    result = made_by("generate_operations", "g.operations_page()")
    assert (ROOT / "docs" / "operations.md").read_text() == result, "run python docs/generate_operations.py"
    rows = [line.split(" | ") for line in result.splitlines() if line.startswith("| `")]
    assert len(rows) >= 140 and all(row[6].startswith("yes") for row in rows), "each operation has a test"


def test_api_page_is_up_to_date() -> None:
    pytest.importorskip("jax", reason="the page lists recompute.jax, too")
    result = made_by("generate_api", "g.api()")
    assert (ROOT / "docs" / "api.md").read_text() == result, "run python docs/generate_api.py"


def test_measured_numbers_agree_with_the_file() -> None:
    result = made_by("generate_numbers", "g.json.dumps({str(path): text for path, text in g.pages().items()})")
    for path, text in json.loads(result).items():
        assert Path(path).read_text() == text, f"{path}: run python docs/generate_numbers.py"


def test_tables_of_unseen_steps_agree_with_the_records() -> None:
    assert savings_page.PAGE.read_text() == savings_page.page(), "run make generate"


def test_readme_states_the_number_of_external_steps() -> None:
    text, rows = " ".join(README.split()), savings_page.rows(list(savings_page.STORED.values()))
    better, equal, worse = savings_page.counts(rows, "named")
    assert better + equal + worse == len(rows), "none is refused"
    assert f"on {len(rows)} third-party steps" in text
    assert f"less memory on {better} of them, the same on {equal} and more on {worse}; it refuses none" in text
    within = sum(row["bare"][0]["bytes"] <= (1 + savings_page.EQUAL) * row["checkpoint"]["bytes"] for row in rows)
    assert f"at most 2 % more than `jax.checkpoint` on {round(100 * within / len(rows))} % of the steps" in text


def test_number_of_another_measurement_is_detected() -> None:
    changed = "g.with_quotes('a b\\n0.395 of c', ('a b {x} of c',), {'x': '0.164'})"
    assert made_by("generate_numbers", changed) == "a b\n0.164 of c"


def test_modelled_numbers_of_the_concepts_page_are_current() -> None:
    """The modelled numbers of the page on concepts are those of the same examples today."""
    page = " ".join(CONCEPTS.split())
    tied = [round(peaks.in_order / 1e6) for peaks in (peaks_before(TIED), peaks_after(TIED))]
    assert "from {} to {} MB.".format(*tied) in page
    first, two = (outputs_too(copies) for copies in (1, 2))
    assert f"the peak with one copy of everything is {first:.2f} of the plain peak" in page
    assert f"On the chain, this reduces the peak to {two:.2f}." in page
    reordered = [
        lowest_peak_schedule(functions_of(recomputed(name))[0]) for name in ("gpt_train.small.mlir", PEAK_IN_UPDATE)
    ]
    gpt, paddle = (item.peak_bytes / item.given_peak_bytes for item in reordered)
    assert f"the peak falls to {gpt:.0%} of its previous value".replace("%", " %") in page
    assert f"on the step of Paddle's four layers to {paddle:.0%}.".replace("%", " %") in page


def test_readme_matches_demo_and_check_output() -> None:
    name = "gpt_train.large.mlir"
    before, after = (round(peaks.in_order / 2**20) for peaks in (peaks_before(name), peaks_after(name)))
    assert f"{before} -> {after} MiB" in README
    assert f"{after} of {before} MiB, or {after / before:.2f} of the plain step." in " ".join(README.split())
    rewritten = original(name).clone()
    rewrite_in_place(rewritten, RecomputeOptions())
    assert f"# {verdict(prove(original(name), rewritten))}" in README
