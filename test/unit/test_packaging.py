"""The wheel and the source distribution have the expected contents and description, and work after installation."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

import recompute
from recompute.test.imports import modules_in
from recompute.test.unit.test_layout import MAY_IMPORT

ROOT = Path(__file__).resolve().parents[2]
SETUP = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", "__pycache__", "*.egg-info", "demo", "site", "dist", "build", "typings"
)
IN_THE_SDIST = """
README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md CITATION.cff LICENSE Makefile mkdocs.yml setup.py .editorconfig
docs/index.md docs/memory.svg docs/measured.json docs/measured/budgets.md test/unit/test_packaging.py
test/filecheck/transforms/clone.mlir examples/stablehlo/mlp.small.mlir benchmarks/solvers/graphs/gpt24L.json.gz
.github/workflows/tests.yml .ci/run .githooks/commit-msg
""".split()


def test_versions_agree() -> None:
    """Every statement of the version agrees with `recompute.__version__`, which the build reads."""
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == recompute.__version__  # pyright: ignore[reportOptionalSubscript]
    assert f"Version {recompute.__version__}." in (ROOT / "CHANGELOG.md").read_text()
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]


@pytest.mark.parametrize("arguments", [["--version"], ["-v"]])
def test_module_prints_its_version(arguments: list[str]) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "recompute", *arguments], capture_output=True, text=True, check=True
    )
    assert completed.stdout == f"recompute {recompute.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--help"], 0, "usage: python -m recompute [--version] {opt,check,run,plan,docs} ..."),
        ([], 2, "recompute: error: no tool is named: expected opt, check, run, plan, docs"),
        (["optimize"], 2, "recompute: error: unknown tool 'optimize': expected opt, check, run, plan, docs"),
        (["opt", "--version"], 0, f"recompute-opt {recompute.__version__} (xdsl "),
    ],
)
def test_module_runs_the_tools(arguments: list[str], code: int, text: str) -> None:
    completed = subprocess.run([sys.executable, "-m", "recompute", *arguments], capture_output=True, text=True)
    assert completed.returncode == code and text in completed.stdout + completed.stderr


def test_readme_for_an_index_has_absolute_links() -> None:
    """Links and pictures of the README become absolute if there is a URL; otherwise dead ones are dropped."""
    text = "![a picture](docs/a.svg), [a page](docs/a.md#part), [elsewhere](https://example.org), [here](#part)"
    absolute = SETUP["readme_for_an_index"](text, "https://example.org/x")
    assert absolute == (
        "![a picture](https://example.org/x/raw/main/docs/a.svg), "
        "[a page](https://example.org/x/blob/main/docs/a.md#part), "
        "[elsewhere](https://example.org), [here](https://example.org/x#part)"
    )
    assert SETUP["readme_for_an_index"](text, "") == ", a page, [elsewhere](https://example.org), here"
    assert set(SETUP["urls"]("https://example.org/x")) == {"Source", "Documentation", "Issues"}


def test_module_prints_the_folder_of_the_pages() -> None:
    completed = subprocess.run([sys.executable, "-m", "recompute", "docs"], capture_output=True, text=True, check=True)
    assert (Path(completed.stdout.strip()) / "index.md").is_file()


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution and the wheel from a copy of the checkout, and return their folder."""
    pytest.importorskip("build", reason="python -m build makes the archives: pip install '.[test]'")
    folder = tmp_path_factory.mktemp("packaging")
    shutil.copytree(ROOT, folder / "source", ignore=NOT_COPIED, symlinks=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "source"]
    completed = subprocess.run(command, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return folder / "dist"


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode())


@pytest.mark.slow
def test_wheel_contains_only_the_package(archives: Path) -> None:
    (wheel,) = archives.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {name.removeprefix("recompute/") for name in archive.namelist() if ".dist-info/" not in name}
    pages = {path for path in files if path == "README.md" or path.startswith("docs/")}
    assert files - pages == {*modules_in(MAY_IMPORT), "py.typed"} - {"setup.py"}
    assert pages >= {"README.md", "docs/index.md", "docs/foreign_dialects.md", "docs/memory.svg"}


@pytest.mark.slow
def test_metadata_describes_the_package(archives: Path) -> None:
    (wheel,) = archives.glob("*.whl")
    result = metadata(wheel)
    assert result["Name"] == "xdsl-recompute" and result["Version"] == recompute.__version__
    assert result["License-Expression"] == "Apache-2.0 WITH LLVM-exception"
    assert "Programming Language :: Python :: 3.13" in result.get_all("Classifier", [])
    description = result.get_payload()
    assert isinstance(description, str) and description.lstrip().startswith("# recompute")
    assert [link for link in re.findall(r"\]\(([^)]*)\)", description) if not link.startswith("http")] == []


@pytest.mark.slow
def test_source_distribution_contains_the_repository(archives: Path) -> None:
    (sdist,) = archives.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        files = [name.partition("/")[2] for name in archive.getnames()]
    assert [name for name in IN_THE_SDIST if name not in files] == []
    assert [name for name in files if "__pycache__" in name or name.startswith(".venv")] == []


@pytest.mark.slow
def test_wheel_works_in_a_fresh_environment(archives: Path, tmp_path: Path) -> None:
    """The wheel works in a fresh environment; its dependencies come from this one, so that no index is needed."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    scripts = tmp_path / "venv" / "bin"
    (wheel,) = archives.glob("*.whl")
    subprocess.run([scripts / "python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    # On this path no `.pth` file counts, so that an editable install of the checkout is not seen.
    dependencies = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
    environment = {**os.environ, "PYTHONPATH": dependencies}
    shutil.copy(ROOT / "examples" / "stablehlo" / "mlp.small.mlir", tmp_path / "step.mlir")

    def run(*command: str) -> str:
        completed = subprocess.run(
            [scripts / command[0], *command[1:]], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr
        return completed.stdout

    place = run("python", "-c", "import recompute; print(recompute.__version__, recompute.__file__)")
    assert place.startswith(f"{recompute.__version__} {tmp_path}")
    run("recompute-opt", "step.mlir", "-p", "recompute", "--print-debuginfo", "-o", "less.mlir")
    assert run("python", "-m", "recompute", "check", "step.mlir", "less.mlir").startswith("proved equal")
    assert "recompute-plan" in run("recompute-plan", "--help") and run("recompute-run", "--version")
