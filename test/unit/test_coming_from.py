"""Examples on the pages for users of other frameworks run, and the passes and options that they name exist."""

from __future__ import annotations

import re
import runpy
from dataclasses import fields
from pathlib import Path

import pytest

from recompute.analysis.request.policies import SAVEABLE
from recompute.dialects.mark_kind import MarkKind
from recompute.rewriting.mark import MarkPass
from recompute.rewriting.recompute import RecomputePass
from recompute.test.conformance.rows import ROWS, named_after_rows
from recompute.tools.recompute_opt import main
from recompute.transforms.clone import ClonePass

ROOT = Path(__file__).resolve().parents[2]
PAGES = {page.stem: page.read_text() for page in sorted((ROOT / "docs").glob("coming_from_*.md"))}
PASSES = {passed.name: passed for passed in (MarkPass, ClonePass, RecomputePass)}
MENTIONED = re.compile(r"`(recompute[\w-]*)\{([^}]*)\}`")
OPTION = re.compile(r"([\w-]+)=(?:\"[^\"]*\"|[^\s\"]+)")


def requests(page: str) -> list[tuple[str, list[str]]]:
    """Return each request in the text, as the pass and the names of its options."""
    return [
        (name, [option.replace("-", "_") for option in OPTION.findall(options)])
        for name, options in MENTIONED.findall(page)
    ]


def test_each_framework_has_a_page() -> None:
    assert set(PAGES) == {f"coming_from_{name}" for name in ("jax", "mindspore", "paddle", "pytorch")}


@pytest.mark.parametrize("name", PAGES)
def test_page_examples_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = re.findall(r"```mlir\n(.*?)```", PAGES[name], re.DOTALL)
    (passes,) = re.findall(
        r"^recompute-opt step\.mlir -p '?([^'\s]+)'? --no-print-debuginfo$", PAGES[name], re.MULTILINE
    )
    source = tmp_path / "step.mlir"
    source.write_text(before)
    assert main([str(source), "-p", passes, "--no-print-debuginfo"]) == 0
    assert capsys.readouterr().out == after
    assert "recompute.copy" in after


@pytest.mark.parametrize("name", PAGES)
def test_options_named_on_page_exist(name: str) -> None:
    result = requests(PAGES[name])
    assert len(result) >= 4
    for passed, options in result:
        known = {field.name for field in fields(PASSES[passed])}
        assert options and set(options) <= known, f"{passed}: {options}"


@pytest.mark.slow("coming_from_pytorch")
@pytest.mark.parametrize("name", PAGES)
def test_portable_requests_on_page_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every request that fits any step with segments is carried out, or leaves the step alone with a remark. A number
    `k` that the reader chooses is 2 here."""
    source = tmp_path / "step.mlir"
    source.write_text((ROOT / "examples" / "stablehlo" / "chain.small.mlir").read_text())
    for passed, options in MENTIONED.findall(PAGES[name]):
        if passed == "recompute" and not re.search("checkpoints=|skip=1", options):
            assert main([str(source), "-p", f"recompute{{{options.replace('=k', '=2')}}}"]) == 0, (
                capsys.readouterr().err
            )


@pytest.mark.parametrize("name", PAGES)
def test_every_claim_has_a_test(name: str) -> None:
    known, tests = {row.key for row in ROWS}, named_after_rows()
    cited = re.findall(r"\b((?:mindspore|paddle)-\d\d)\b", PAGES[name])
    assert cited and all(key in known and tests[key] for key in cited)
    bars = (ROOT / "test" / "conformance" / "test_bars.py").read_text()
    assert all(f"def {bar}(" in bars for bar in re.findall(r"`(test_bar_\w+)`", PAGES[name]))


def test_mindspore_snippets_run(tmp_path: Path) -> None:
    """The snippets of the page on MindSpore run; `test_paddle_examples.py` runs those on Paddle."""
    pytest.importorskip("jax", reason="the calls are those of the frontend for JAX")
    page = (ROOT / "docs" / "mindspore_calls.md").read_text()
    for snippet in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        (tmp_path / "snippet.py").write_text(snippet)
        runpy.run_path(str(tmp_path / "snippet.py"))


def test_links_resolve() -> None:
    for page in PAGES.values():
        for link in re.findall(r"\]\((?!http)([^)#]+)", page):
            assert (ROOT / "docs" / link).exists(), link


def test_every_jax_policy_is_known_by_name() -> None:
    import jax

    theirs = {name for name in dir(jax.checkpoint_policies) if not name.startswith("_")}
    assert theirs - {"save_from_both_policies"} <= set(SAVEABLE)
    assert all(name in PAGES["coming_from_jax"] for name in theirs)


def test_policies_of_marks_are_those_of_pytorch() -> None:
    page = PAGES["coming_from_pytorch"]
    assert {name.lower() for name in re.findall(r"\b(?:MUST|PREFER)_[A-Z]+\b", page)} | {"offload"} == set(MarkKind)
