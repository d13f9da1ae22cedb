"""The documentation site builds without warnings, and its search finds the contents of the pages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from recompute.test.documentation import DOCS, ROOT

pytest.importorskip("material", reason="mkdocs-material builds the site: pip install '.[docs]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    pages = [page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")]
    assert [str(page) for page in pages if not (site / page).exists()] == []
    assert (site / "memory.svg").exists() and not list(site.rglob("*.py"))


def test_entry_page_links_to_tutorials(site: Path) -> None:
    entry = (site / "index.html").read_text()
    assert 'href="tutorial_jax.html"' in entry and 'href="tutorial_mlir.html"' in entry


def test_site_loads_nothing_from_other_hosts(site: Path) -> None:
    """No script or font is loaded from another host, so that the pages can be read offline."""
    entry = (site / "index.html").read_text()
    assert 'src="http' not in entry and "fonts.g" not in entry


def test_search_index_contains_sections(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    titles = {entry["title"] for entry in index["docs"]}
    assert {"The first rewrite", "Set a budget", "Terms of the field", "<code>recompute-clone</code>"} <= titles


def test_dead_link_fails_the_build(tmp_path: Path) -> None:
    """A dead link fails the strict build."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Page\n\n[nowhere](nowhere.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\nstrict: true\ntheme: material\nplugins: [search]\n")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", tmp_path / "site"]
    completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert completed.returncode != 0 and "nowhere.md" in completed.stderr
