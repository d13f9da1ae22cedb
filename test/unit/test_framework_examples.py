"""The examples for flax and equinox: they run as their comments say, and save as much memory as they state."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(("framework", "segment"), [("flax", "Block_0"), ("equinox", "blocks0")])
def test_example_trains_in_less_memory(framework: str, segment: str):
    pytest.importorskip(framework)
    pytest.importorskip("optax")
    completed = subprocess.run(
        [sys.executable, f"examples/with_{framework}.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    (ratio,) = re.findall(r"^temporaries .* ([\d.]+)$", completed.stdout, re.MULTILINE)
    assert float(ratio) < 0.4
    assert segment in completed.stdout
    losses = [float(match) for match in re.findall(r"loss ([\d.]+)", completed.stdout)]
    assert len(losses) == 3 and losses[2] < losses[0]
