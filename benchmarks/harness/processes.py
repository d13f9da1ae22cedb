"""Measure the CPU time of functions, and run benchmarks in child processes.

Benchmarks compare CPU seconds rather than wall time, because other load on the machine affects them less.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any, TypeVar

Result = TypeVar("Result")


def with_cpu_seconds(work: Callable[[], Result]) -> tuple[Result, float]:
    """Call a function once, and return its result and the CPU seconds that this process spent."""
    start = process_time()
    result = work()
    return result, process_time() - start


def cpu_seconds(work: Callable[[], object]) -> float:
    """Call a function once, and return the CPU seconds that this process spent."""
    return with_cpu_seconds(work)[1]


def run_module(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m NAME ARGUMENTS` in a child process, and return its exit status and captured output."""
    return subprocess.run([sys.executable, "-m", name, *arguments], capture_output=True, text=True, check=False)


def json_from_module(name: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Any:
    """Run `python -m NAME ARGUMENTS` in a child process, and return the JSON that it prints to standard output.

    Its progress and warnings go to this process's standard error.

    Args:
        name: The name of the module.
        arguments: The arguments of the module.
        environment: Environment variables to set in addition to those of this process.

    Raises:
        subprocess.CalledProcessError: The exit status of the child is not 0.
    """
    outcome = subprocess.run(
        [sys.executable, "-m", name, *arguments],
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(outcome.stdout)


@dataclass(frozen=True)
class ProcessCost:
    """The cost of a child process.

    Attributes:
        cpu_seconds: The CPU time of the process and its children, in user and kernel mode.
        peak_bytes: The maximum resident set. It includes the parent's memory between `fork` and `exec`.
        output: The text that the process wrote to standard output.
    """

    cpu_seconds: float
    peak_bytes: int
    output: str


def run_python(
    arguments: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> ProcessCost:
    """Run this Python interpreter in a child process, and measure the process.

    Args:
        arguments: The arguments of Python, such as `("-c", code)`.
        folder: The working directory; by default, the current one.
        environment: Environment variables to set in addition to those of this process.

    Raises:
        SystemExit: The exit status of the child is not 0.
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
        command = " ".join(arguments)[:200]
        raise SystemExit(f"python {command}: failed with exit status {child.returncode}: {output[-400:]}")
    return ProcessCost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, output)
