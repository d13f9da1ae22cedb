"""The compiled and the interpreted search: equal copies for an equal amount of work."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from recompute.planning.solvers.kernels import entries
from recompute.planning.solvers.kernels.compiled import COMPILE_SECONDS
from recompute.support.interrupts import stop_predicate

PROGRAM = """
import sys
from recompute.planning.solvers.kernels import entries
from recompute.planning.solvers.kernels.compiled import COMPILE_SECONDS
from recompute.support.interrupts import stop_predicate
from recompute.planning.solvers.local_search import Annealing, LocalSearch
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.test.unit.planning.solvers.exhaustive import random_problem
if sys.argv[1:]:
    entries.CACHED_SECONDS = entries.UNCACHED_SECONDS = float(sys.argv[1])
kernels = set()
for seed in (1, 2, 3, 5, 8):
    problem = random_problem(seed, 40)
    budget = evaluate(problem, sequence_of(problem, ())).peak_bytes * 8 // 10
    search = LocalSearch(problem)
    repaired = search.repair(budget)
    kernels.add("plain" if search._kernels is entries.PLAIN else "compiled")
    print(sorted(repaired) if repaired is not None else None)
    annealed = search.anneal(budget, repaired or (), Annealing(25, seed))
    print(sorted(annealed) if annealed is not None else None)
    kernels.add("plain" if search._kernels is entries.PLAIN else "compiled")
print(*sorted(kernels))
"""
needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed: there is one path only")


def run(path: str, *arguments: str) -> list[str]:
    environment = {**os.environ, "RECOMPUTE_PLAN_PATH": path}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    completed = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.splitlines()


@needs_numba
def test_both_paths_find_the_same_plans() -> None:
    compiled, plain = run("compiled"), run("plain")
    assert (compiled[-1], plain[-1]) == ("compiled", "plain")
    assert compiled[:-1] == plain[:-1] and any("(" in line for line in plain)


@needs_numba
def test_switching_the_path_keeps_the_plan() -> None:
    changed, plain = run("", "0.02"), run("plain")
    assert changed[-1] == "compiled plain"
    assert changed[:-1] == plain[:-1]


@pytest.fixture
def adaptive(monkeypatch: pytest.MonkeyPatch) -> entries.KernelChoice:
    monkeypatch.setenv("RECOMPUTE_PLAN_PATH", "")
    return entries.KernelChoice()


@needs_numba
@pytest.mark.parametrize(
    "operations, seconds, is_cached, is_plain",
    [
        (entries.MAX_PLAIN_OPERATIONS, 0.0, True, True),
        (entries.MAX_PLAIN_OPERATIONS, entries.CACHED_SECONDS, True, False),
        (entries.MAX_PLAIN_OPERATIONS, entries.CACHED_SECONDS, False, True),
        (entries.MAX_PLAIN_OPERATIONS, entries.UNCACHED_SECONDS, False, False),
        (entries.MAX_PLAIN_OPERATIONS + 1, 0.0, False, False),
    ],
)
def test_small_problems_do_not_wait_for_numba(
    adaptive: entries.KernelChoice, operations: int, seconds: float, is_cached: bool, is_plain: bool
) -> None:
    adaptive.plain_seconds = seconds
    adaptive.is_cached = is_cached
    assert (adaptive.kernels(operations) is entries.PLAIN) == is_plain


@needs_numba
@pytest.mark.parametrize("operations, is_plain", [(entries.MAX_PLAIN_OPERATIONS, True), (5000, False)])
def test_time_limit_leaves_no_time_to_compile(adaptive: entries.KernelChoice, operations: int, is_plain: bool) -> None:
    adaptive.plain_seconds, adaptive.is_cached = entries.UNCACHED_SECONDS, False
    with stop_predicate(COMPILE_SECONDS - 1):
        assert (adaptive.kernels(operations) is entries.PLAIN) == is_plain
    with stop_predicate(10 * COMPILE_SECONDS):
        assert adaptive.kernels(operations) is not entries.PLAIN


@needs_numba
def test_progress_states_that_numba_compiles(adaptive: entries.KernelChoice, caplog: pytest.LogCaptureFixture) -> None:
    adaptive.is_cached = False
    adaptive.kernels(entries.MAX_PLAIN_OPERATIONS + 1)
    adaptive.kernels(entries.MAX_PLAIN_OPERATIONS + 1)
    assert caplog.messages == [entries.COMPILING]
