"""With `--cache`, `recompute-opt` has the same output, and no pass runs a second time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import recompute
from recompute.support.disk_cache import SUFFIX
from recompute.support.interrupts import Interrupt
from recompute.test.imports import ROOT
from recompute.tools import recompute_opt
from recompute.tools.runs.pass_runs import ModuleRun

STEP = ROOT / "examples" / "stablehlo" / "chain.small.mlir"


@dataclass
class Runs:
    """Runs of `recompute-opt` in this process, with an empty cache."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    modules: int = 0

    def __call__(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        """Run with these arguments, and return standard output and standard error."""
        assert recompute_opt.main(list(arguments)) == code
        return self.capture.readouterr()

    @property
    def entries(self) -> int:
        return len(list((self.folder / "cache").glob(f"*{SUFFIX}")))


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runs:
    value, process = Runs(tmp_path, capsys), ModuleRun.process

    def counted(run: ModuleRun, text: str) -> str:
        value.modules += 1
        return process(run, text)

    monkeypatch.setattr(ModuleRun, "process", counted)
    monkeypatch.setattr(recompute.config, "cache_dir", str(tmp_path / "cache"))
    return value


def test_cached_output_equals_a_fresh_one(runs: Runs):
    plans = [runs.folder / name for name in ("fresh.json", "stored.json", "cached.json")]
    arguments = str(STEP), "-p", "recompute{segments=block*}", "--no-print-debuginfo", "--emit-plan"
    fresh = runs(*arguments, str(plans[0]))
    assert "note: locations are not printed" in fresh[1] and runs.entries == 0
    assert [runs(*arguments, str(plan), "--cache") for plan in plans[1:]] == [fresh, fresh]
    assert runs.modules == 2 and runs.entries == 1
    assert len({plan.read_text() for plan in plans}) == 1


def test_other_input_options_and_forms_are_run_again(runs: Runs):
    text = runs.folder / "other.mlir"
    text.write_text(STEP.read_text())
    commands = [
        [str(STEP)],
        [str(text)],  # remarks name the file
        [str(STEP), "-p", "recompute"],
        [str(STEP), "-p", "recompute{copies=1}"],
        [str(STEP), "-p", "recompute", "--no-print-debuginfo"],
        [str(STEP), "-p", "recompute", "--print-op-generic"],
        [str(STEP), "-p", "recompute", "--no-proof"],
    ]
    first = [runs(*command, "--cache") for command in commands]
    assert runs.modules == runs.entries == len(commands)
    assert [runs(*command, "--cache") for command in commands] == first and runs.modules == len(commands)
    text.write_text(STEP.read_text() + "\n")
    runs(str(text), "--cache")
    assert runs.modules == len(commands) + 1


def test_changed_option_file_is_read_again(runs: Runs):
    plan = runs.folder / "plan.json"
    runs(str(STEP), "-p", "recompute", "--emit-plan", str(plan))
    command = str(STEP), "-p", f'recompute{{plan="{plan}"}}', "--cache"
    assert runs(*command) == runs(*command) and runs.modules == 2
    plan.write_text("{}")
    assert "recompute_plan is missing" in runs(*command, code=1)[1] and runs.modules == 3


def test_errors_are_not_stored(runs: Runs):
    command = str(STEP), "-p", "recompute{segments=nothing*}", "--cache"
    assert runs(*command, code=1) == runs(*command, code=1)
    assert runs.modules == 2 and runs.entries == 0
    runs(str(STEP), "--cache")
    missing = str(STEP), "--cache", "--emit-plan", str(runs.folder / "plan.json")
    assert "none of the passes makes a plan" in runs(*missing, code=2)[1]


@pytest.mark.parametrize(
    "option", [("-t", "explain"), ("--pass-statistics",), ("--print-ir-after-all",), ("--verify-diagnostics",)]
)
def test_runs_with_further_output_are_not_stored(option: tuple[str, ...], runs: Runs):
    for _ in range(2):
        runs(str(STEP), "-p", "recompute-inline", *option, "--cache")
    assert runs.modules == 2 and runs.entries == 0


def test_runs_with_passes_of_other_packages_are_not_stored(runs: Runs, monkeypatch: pytest.MonkeyPatch):
    from recompute.transforms.inline import InlinePass

    monkeypatch.setattr(InlinePass, "__module__", "acme.passes")
    for _ in range(2):
        runs(str(STEP), "-p", "recompute-inline", "--cache")
    assert runs.modules == 2 and runs.entries == 0


def test_interrupted_search_is_not_cached(runs: Runs, monkeypatch: pytest.MonkeyPatch):
    """The result of a search that a time limit or an interrupt ends is not stored, since another run may find more."""
    for _ in range(2):
        runs(str(STEP), "-p", "recompute{budget=90% memory-model=order time-limit=4.0}", "--cache")
    assert runs.modules == 2 and runs.entries == 0
    process = ModuleRun.process

    def interrupted(run: ModuleRun, text: str) -> str:
        monkeypatch.setattr(Interrupt, "count", Interrupt.count + 1)
        return process(run, text)

    monkeypatch.setattr(ModuleRun, "process", interrupted)
    runs(str(STEP), "-p", "recompute", "--cache")
    assert runs.entries == 0


def test_empty_cache_folder_disables_the_cache(runs: Runs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recompute.config, "cache_dir", "")
    actual: list[Any] = [runs(str(STEP), "--cache") for _ in range(2)]
    assert actual[0] == actual[1] and runs.modules == 2 and runs.entries == 0
