"""Gradients of a `shard_map`, in a separate process with eight devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import recompute

ENVIRONMENT = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
ROOT = Path(recompute.__file__).resolve().parent


@pytest.mark.slow("more", "some")
@pytest.mark.parametrize(
    "names", [("inside", "inside a scan"), ("one each", "loss inside", "scan inside")], ids=["some", "more"]
)
def test_shard_map_needs_no_more_memory_than_checkpoint(names: tuple[str, ...]) -> None:
    """The step needs no more memory than `jax.checkpoint`. The process is separate, since devices are requested before
    JAX starts."""
    environment = {**ENVIRONMENT, "PYTHONPATH": str(ROOT.parent)}
    call = [sys.executable, "-m", "recompute.test.training_steps.on_devices", *names]
    completed = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert completed.returncode == 0, completed.stderr[-3000:]
    assert completed.stdout.count("\n") == len(names)


def test_reports_state_bytes_per_device() -> None:
    environment = {**ENVIRONMENT, "PYTHONPATH": str(ROOT.parent)}
    call = [sys.executable, "-m", "recompute.test.training_steps.reports_on_devices"]
    completed = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert completed.returncode == 0, completed.stderr[-3000:]
    assert completed.stdout == "all as expected\n"
