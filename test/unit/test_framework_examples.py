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
def test_it_trains_in_less_memory(framework: str, segment: str):
    pytest.importorskip(framework)
    pytest.importorskip("optax")
    done = subprocess.run(
        [sys.executable, f"examples/with_{framework}.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (ratio,) = re.findall(r"^temporaries .* ([\d.]+)$", done.stdout, re.MULTILINE)
    assert float(ratio) < 0.4
    assert segment in done.stdout
    losses = [float(one) for one in re.findall(r"loss ([\d.]+)", done.stdout)]
    assert len(losses) == 3 and losses[2] < losses[0]
