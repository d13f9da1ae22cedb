"""CPU time of functions, and CPU time and peak memory of child processes.

CPU seconds are compared rather than wall time, because other load on the machine affects them less.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of this process while the function runs once."""
    start = process_time()
    work()
    return process_time() - start


@dataclass(frozen=True)
class ProcessCost:
    """The cost of a child process.

    Attributes:
        cpu_seconds: CPU time of the process and its own children, in user and kernel mode.
        peak_bytes: Its maximum resident set. It includes the memory of the parent between `fork` and `exec`.
        output: What it wrote to standard output.
    """

    cpu_seconds: float
    peak_bytes: int
    output: str


def run_python(
    arguments: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> ProcessCost:
    """Run this Python with arguments, and measure the process.

    Args:
        arguments: The arguments of Python, as `("-c", code)`.
        folder: The working directory; by default, that of this process.
        environment: Variables that are set in addition to those of this process.

    Raises:
        SystemExit: The exit status is not 0.
    """
    child = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None, "standard output is a pipe"
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        words = f"{' '.join(arguments)[:200]}: {output[-400:]}"
        raise SystemExit(f"a child process failed with exit status {child.returncode}: {words}")
    return ProcessCost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, output)
