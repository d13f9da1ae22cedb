"""Without numba a budget limits the time of its search, and says so."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from recompute.options.recompute_options import RecomputeOptions
from recompute.planning.solvers import effort
from recompute.rewriting import rewrite as rewrite_module
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.test.examples import original


def recorded_limits(monkeypatch: pytest.MonkeyPatch, is_compiled: bool) -> list[float | None]:
    """Return a list to which each search appends its time limit in seconds."""
    limits, stop_predicate = list[float | None](), rewrite_module.stop_predicate

    def recording(seconds: float | None) -> AbstractContextManager[Callable[[], bool]]:
        limits.append(seconds)
        return stop_predicate(seconds)

    monkeypatch.setattr(effort, "is_compiled", lambda: is_compiled)
    monkeypatch.setattr(rewrite_module, "stop_predicate", recording)
    return limits


@pytest.mark.parametrize(("time_limit", "warnings"), [(None, 1), (30.0, 0)])
def test_search_as_plain_python_is_limited_with_a_warning(
    time_limit: float | None, warnings: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limits = recorded_limits(monkeypatch, is_compiled=False)
    with caplog.at_level(logging.WARNING, "recompute"):
        rewrite_in_place(original("chain.small.mlir").clone(), RecomputeOptions(budget="80%", time_limit=time_limit))
    assert limits == [time_limit or 60.0]
    assert [record.message.startswith("numba is not installed") for record in caplog.records] == [True] * warnings


def test_search_is_unlimited_with_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = recorded_limits(monkeypatch, is_compiled=True)
    rewrite_in_place(original("chain.small.mlir").clone(), RecomputeOptions(budget="80%"))
    assert limits == [None]
