"""Environments of the real systems, and runs of a case in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recompute.test.conformance.measures import Array

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class System:
    """Package of a real system, at the version that the tests describe."""

    requirement: str
    folder: str
    script: str
    environment: dict[str, str]

    @property
    def python(self) -> Path:
        return ROOT / self.folder / "bin" / "python"


SYSTEMS = {
    "mindspore": System(
        "mindspore==2.10.0", ".venv-mindspore", "mindspore_run.py", {"GLOG_v": "1", "MS_DEV_SAVE_GRAPHS": "1"}
    ),
    "paddle": System("paddlepaddle==3.3.1", ".venv-paddle", "paddle_run.py", {}),
}


class NotInstalled(RuntimeError):
    """Error if an environment cannot be created, usually because there is no network."""


class CaseFailed(RuntimeError):
    """Error if the real system fails to run a case."""


def install(system: System) -> None:
    """Create the environment if it does not exist. Raises `NotInstalled`."""
    result = ROOT / system.folder / ".installed"
    if result.exists() and result.read_text() == system.requirement:
        return
    pip = [str(system.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", system.requirement]
    for command in ([sys.executable, "-m", "venv", str(ROOT / system.folder)], pip):
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            raise NotInstalled(f"cannot install {system.requirement}: {last_line(ran.stderr)}")
    result.write_text(system.requirement)


@dataclass(frozen=True)
class Run:
    """Output and results of one process of a real system."""

    numbers: dict[str, Any]
    inputs: list[Array]
    results: list[Array]
    log: str
    dump: Path


def run(system: System, case: str, kind: str, folder: Path) -> Run:
    """Run a case in a process of its own; `kind` is `plain` or `recomputed`. Raises `CaseFailed`."""
    folder = folder / f"{case}.{kind}"
    folder.mkdir()
    files = [folder / "inputs.npz", folder / "results.npz"]
    command = [str(system.python), str(HERE / "theirs" / system.script), case, kind, *map(str, files)]
    environment = os.environ | system.environment | {"MS_DEV_SAVE_GRAPHS_PATH": str(folder)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    if ran.returncode:
        raise CaseFailed(f"{case}, {kind}: {last_line(ran.stderr)}")
    inputs, results = (list(np.load(file).values()) for file in files)
    return Run(json.loads(last_line(ran.stdout)), inputs, results, ran.stderr + ran.stdout, folder)


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]
