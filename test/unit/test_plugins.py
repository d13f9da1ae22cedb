"""The pass of docs/plugins.md works if an entry point registers it, as for an installed package."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from recompute.driver.pipelines import plugins
from recompute.driver.pipelines.pipeline import known_passes
from recompute.test.documentation import training_step

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "plugins.md").read_text()
PASS, LIT_CONFIG = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(LIT_TEST,) = re.findall(r"```mlir\n(.*?)```", PAGE, re.DOTALL)
(PROJECT,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
COMMANDS, LIT_COMMAND = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
SCRIPTS = Path(sys.executable).parent


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the package on the path as an installer does: the module, and its metadata with the entry point."""
    packages = tmp_path / "packages"
    metadata = packages / "acme_passes-0.1.dist-info"
    metadata.mkdir(parents=True)
    (packages / "acme_passes.py").write_text(PASS)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-passes\nVersion: 0.1\n")
    entry_points = re.search(r'\[project\.entry-points\."(.+?)"\]\n((?:.+\n)+)', PROJECT)
    assert entry_points is not None
    (metadata / "entry_points.txt").write_text(f"[{entry_points[1]}]\n{entry_points[2].replace(chr(34), '')}")
    root = Path(__file__).resolve().parents[3]
    monkeypatch.setenv("PYTHONPATH", f"{packages}:{root}")
    (tmp_path / "step.mlir").write_text(training_step("block"))
    return tmp_path


def execute(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(command)
    return subprocess.run([SCRIPTS / program, *arguments], cwd=folder, capture_output=True, text=True)


def test_example_is_short() -> None:
    assert len(PASS.splitlines()) <= 40


def test_page_commands_run(installed: Path) -> None:
    help_text, rewriting, checking = (execute(command, installed) for command in COMMANDS.splitlines())
    assert "acme-save" in help_text.stdout or "Mark the results" in help_text.stdout
    assert "operation=<str>" in help_text.stdout and "such as `stablehlo.dot_general`" in help_text.stdout
    assert rewriting.returncode == 0, rewriting.stderr
    assert "remark: stablehlo.tanh is saved" in rewriting.stderr
    assert "recompute.recompute = false" in (installed / "less.mlir").read_text()
    assert checking.stdout.startswith("proved equal")


def test_lit_checks_the_pass_of_the_page(installed: Path) -> None:
    """The test of the page passes, and fails for another result and for another remark."""
    tests = installed / "tests"
    tests.mkdir()
    (tests / "lit.cfg.py").write_text(LIT_CONFIG)
    variants = {
        "right": LIT_TEST,
        "other-mark": LIT_TEST.replace("recompute = false} : tensor", "recompute = true} : tensor"),
        "other-remark": LIT_TEST.replace("tanh is saved", "sine is saved"),
    }
    for name, text in variants.items():
        (tests / f"{name}.mlir").write_text(text)
    run = execute(LIT_COMMAND.strip(), installed)
    assert set(re.findall(r"^(PASS|FAIL): acme :: (\S+)\.mlir", run.stdout, re.MULTILINE)) == {
        ("PASS", "right"),
        ("FAIL", "other-mark"),
        ("FAIL", "other-remark"),
    }, run.stdout


def test_plugin_errors_are_reported(installed: Path) -> None:
    missing = execute("recompute-opt step.mlir -p acme-save", installed)
    assert (missing.returncode, "error: acme-save: name an operation" in missing.stderr) == (1, True)
    misspelt = execute("recompute-opt step.mlir -p acme-svae", installed)
    assert "unknown pass 'acme-svae'; did you mean 'acme-save'?" in misspelt.stderr
    unknown = execute("recompute-opt step.mlir -p 'acme-save{op=x}'", installed)
    assert "pass 'acme-save' has no option 'op'" in unknown.stderr
    assert "  acme-save" in execute("recompute-opt --list-passes", installed).stdout


def test_unknown_pass_names_the_entry_point(installed: Path) -> None:
    """A pass in the group `xdsl.passes`, which nothing reads, is unknown: the error names the right group."""
    metadata = installed / "packages" / "other-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text("[xdsl.passes]\nmy-pass = other_passes:MyPass\n")
    for command in ("step.mlir -p my-pass", "--help-pass my-pass"):
        error = execute(f"recompute-opt {command}", installed).stderr
        hint = "entry points of 'xdsl.passes' are not read: a pass is registered by 'xdsl.universe' (docs/plugins.md)"
        assert error.endswith(f"; {hint}\n"), error


BROKEN = {
    "failing_import": ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
    "no_universe": ("UNIVERSE = 1", "TypeError: expected an xDSL Universe, not int"),
    "name_taken": (
        'from xdsl.universe import Universe\nUNIVERSE = Universe(all_passes={"acme-save": lambda: None})',
        "ValueError: the pass 'acme-save' is also defined by another plugin",
    ),
}


def test_broken_plugins_are_skipped(installed: Path) -> None:
    """Each broken plugin is skipped with one warning, and the others are used."""
    for name, (source, _) in BROKEN.items():
        metadata = installed / "packages" / f"{name}-0.1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
        (metadata / "entry_points.txt").write_text(f"[xdsl.universe]\n{name} = {name}_plugin:UNIVERSE\n")
        (installed / "packages" / f"{name}_plugin.py").write_text(source)
    run = execute("recompute-opt step.mlir -p 'acme-save{operation=stablehlo.tanh}' -o less.mlir", installed)
    assert run.returncode == 0, run.stderr
    warnings = {
        f"recompute-opt: warning: plugin '{name}' ({name}_plugin:UNIVERSE) is left out: {reason}"
        for name, (_, reason) in BROKEN.items()
    }
    assert run.stderr.count("warning:") == len(BROKEN) and set(run.stderr.splitlines()[: len(BROKEN)]) == warnings
    assert "recompute.recompute = false" in (installed / "less.mlir").read_text()


def test_import_of_a_broken_plugin_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken", "no_such_module:UNIVERSE", plugins.GROUP)

    def entry_points(group: str) -> list[EntryPoint]:
        return [broken]

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    with pytest.warns(RuntimeWarning, match="plugin 'broken' .* is left out: ModuleNotFoundError"):
        assert "recompute" in known_passes()
