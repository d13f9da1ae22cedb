"""The compiled and the interpreted search: equal copies for an equal amount of work."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

PROGRAM = """
from recompute.planning.solvers.kernels.compiled import PATH
from recompute.planning.solvers.local_search import LocalSearch
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.test.unit.planning.solvers.exhaustive import random_problem
print(PATH)
for seed in (1, 2, 3, 5, 8):
    problem = random_problem(seed, 40)
    budget = evaluate(problem, sequence_of(problem, ())).peak_bytes * 8 // 10
    search = LocalSearch(problem)
    found = search.repaired(budget)
    print(sorted(found) if found is not None else None)
    found = search.annealed(budget, found or (), 25, seed)
    print(sorted(found) if found is not None else None)
"""


def run(path: str) -> list[str]:
    environment = {**os.environ, "RECOMPUTE_PLAN_PATH": path}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed: there is one path only")
def test_the_same_plans() -> None:
    compiled, plain = run("compiled"), run("plain")
    assert (compiled[0], plain[0]) == ("compiled", "plain")
    assert compiled[1:] == plain[1:] and any("(" in line for line in plain)
