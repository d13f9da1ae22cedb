"""The path from JAX through recompute-opt to XLA and back works as documented."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="JAX lowers the steps and XLA runs them")

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str) -> str:
    completed = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


@pytest.mark.slow
def test_recipe_saves_memory_with_equal_results():
    """A quarter of the temporaries is saved, and results are equal up to XLA's rounding; the proof covers exact
    equality."""
    output = run("examples/with_jax.py")
    before, after = (float(size) for size in re.findall(r"temporaries \w+: (\S+) MiB", output))
    assert after < 0.75 * before
    (relative,) = re.findall(r"^results: \d of 7 results differ, .* by (\S+) in relative terms$", output, re.MULTILINE)
    assert float(relative) < 1e-5


@pytest.mark.slow
def test_recipe_needs_no_more_memory_and_work_than_checkpoint(tmp_path: Path):
    result = tmp_path / "found.json"
    output = run("benchmarks/xla_memory/against_jax_checkpoint.py", "chain", "mlp", "--json", str(result))
    assert re.findall(r"^(\w+) large", output, re.MULTILINE) == ["chain", "mlp"]
    assert "MISSED" not in output
    measured = json.loads((ROOT / "docs" / "measured.json").read_text())
    if version("jax") == measured["versions"]["jax"]:
        for load in json.loads(result.read_text()):
            kept = measured["against_jax_checkpoint"][load["example"]]
            for name, cost in load["costs"].items():
                same = all(cost[what] == number for what, number in kept[name].items())
                assert same, f"{load['example']}, {name}: run benchmarks/xla_memory/against_jax_checkpoint.py --write"
