"""Fixtures that run the search of small problems without compiling it; `test_paths.py` compares the two."""

import os

import pytest


@pytest.fixture(autouse=True)
def plain_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the plain kernels, unless the test or the environment asks for others.

    The fixture applies to this folder only: other tests search with compiled kernels, as users do.
    """
    monkeypatch.setenv("RECOMPUTE_PLAN_PATH", os.environ.get("RECOMPUTE_PLAN_PATH", "plain"))
