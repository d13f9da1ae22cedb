"""Keys of the disk cache: digests of the inputs on which an answer depends.

A key covers the input, the options, all registered declarations (rules, bytes of types, purity, phase sources), and the
versions of this package and of the packages that it uses. An answer is not cached if it depends on an object that
cannot be identified in a different process. Examples are planners, policies and measurements given as Python functions,
pipelines, and registered functions that refer to such objects.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ...analysis.step.phase_sources import registered_sources
from ...options.option_facts import option_facts_of
from ...options.recompute_options import RecomputeOptions
from ...options.selection import SelectionByFunction
from ...planning.solvers.effort import is_compiled
from ...proof.operations.declarations import registered_pure
from ...rules.registry import registrations
from ...support.fingerprint import NoFingerprint, fingerprint

PACKAGES = ("xdsl", "jax", "jaxlib", "numpy", "numba", "highspy", "scipy", "ortools")
"""The packages on which an answer may depend; they need not be installed."""
ROOT = Path(__file__).resolve().parents[2]
"""The directory of this package."""
NOT_SOURCES = frozenset({"test", "docs", "examples", "benchmarks", "typings", "build"})


def cache_key(kind: str, *parts: object) -> str | None:
    """Return the key under which an answer is cached; None if it cannot be cached.

    Args:
        kind: The kind of the answer, such as "rewrite".
        parts: The values on which the answer depends. Each must have a fingerprint.
    """
    try:
        return fingerprint((kind, versions(), is_compiled(), _registrations(), parts))
    except (NoFingerprint, RecursionError):
        return None


def options_key(options: RecomputeOptions) -> str:
    """Return the part of a key that represents the options.

    Raises `NoFingerprint` for options whose contents cannot be compared: functions, passes and time limits.
    """
    without_key = [
        option.name
        for option in fields(options)
        if not option_facts_of(option).is_plain_data and getattr(options, option.name) is not None
    ]
    if isinstance(options.selection, SelectionByFunction):
        without_key.append("policy")
    if without_key:
        raise NoFingerprint(f"the result cannot be cached: option {without_key[0]} cannot be compared across processes")
    return fingerprint((options, content_of(options.cost)))


def content_of(path: str) -> str | None:
    """Return the digest of the content of a file; None if the path names no readable file."""
    try:
        return sha256(Path(path).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None


def _registrations() -> object:
    """Return the registered declarations, which change how a step is read, rewritten or proved."""
    return registrations(), registered_pure(), tuple(registered_sources().items())


@cache
def versions() -> Mapping[str, str | None]:
    """Return the versions of this package and of `PACKAGES`; None for a package that is not installed."""
    packages = {name: _version_of(name) for name in PACKAGES}
    return {"python": platform.python_version(), "recompute": own_version(ROOT), **packages}


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def own_version(root: Path) -> str:
    """Return a digest of the sources of this package, computed from the record of an installed wheel or from the files.

    `root`: the directory of the package.
    """
    records = [path / "RECORD" for path in root.parent.glob("xdsl_recompute-*.dist-info")]
    digest = sha256()
    for path in records if len(records) == 1 and records[0].is_file() else _sources(root):
        digest.update(f"{path.relative_to(root.parent)}\n".encode() + sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _sources(root: Path) -> list[Path]:
    folders = [path for path in root.iterdir() if path.is_dir() and path.name not in NOT_SOURCES]
    inside = [path for folder in folders if not folder.name.startswith(".") for path in folder.rglob("*.py")]
    return sorted([*root.glob("*.py"), *inside])
