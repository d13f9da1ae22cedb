"""The metadata that is computed: the project's URL, and the README as indexes show it. The rest is in pyproject.toml.

An index shows the README without the files next to it. With a URL its links and its picture are absolute; without one
links are left out, so that none is dead.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py

URL = ""
"""The URL of the repository, without a final slash; defined here alone, and empty until there is one."""
FILES, RAW = "blob/main", "raw/main"
"""The path that code hosts insert between the URL of a repository and the path of a page, or of a picture."""
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)]*)\)")


def readme_for_an_index(text: str, url: str) -> str:
    """Return the README with absolute links, or without links if there is no URL.

    A link to a heading is a link to the repository's home page: an index gives its headings no anchors.
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
    """A build command for the package in this folder, without this file."""

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
