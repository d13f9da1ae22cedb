"""Computed metadata: the project's URL, and the README for package indexes. All other metadata is in pyproject.toml.

A package index shows the README without the files to which it links. So its links and its picture are absolute if there
is a URL, and are removed otherwise, so that no link is dead.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py

URL = ""
"""The URL of the repository, without a final slash; empty until there is one. It is defined only here."""
FILES, RAW = "blob/main", "raw/main"
"""The paths that code hosts insert between the URL of a repository and the path of a file: for pages, and for
pictures."""
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)]*)\)")


def readme_for_an_index(text: str, url: str) -> str:
    """Return the README with absolute links, or without links if `url` is empty.

    A link to a heading leads to the repository's home page, because a package index gives headings no anchors.
    """
    if url:
        return _LINK.sub(lambda link: f"{link[1]}[{link[2]}]({_absolute(url, link[3], picture=bool(link[1]))})", text)
    return _LINK.sub(lambda link: "" if link[1] else link[2], text)


def _absolute(url: str, target: str, picture: bool) -> str:
    if target.startswith("#"):
        return url + target
    return f"{url}/{RAW if picture else FILES}/{target}"


def urls(url: str) -> dict[str, str]:
    return {"Source": url, "Documentation": f"{url}/{FILES}/docs/index.md", "Issues": f"{url}/issues"} if url else {}


class BuildPackage(build_py):
    """The build command for the package in this directory, which leaves out this file."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        untyped: Any = super()
        return [module for module in untyped.find_package_modules(package, package_dir) if module[1] != "setup"]


if __name__ == "__main__":
    setup(
        cmdclass={"build_py": BuildPackage},
        long_description=readme_for_an_index(Path(__file__).with_name("README.md").read_text("utf-8"), URL),
        long_description_content_type="text/markdown",
        project_urls=urls(URL),
    )
