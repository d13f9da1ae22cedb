"""Independent reader of MLIR: jaxlib, which returns the canonical form of a text or the reason why it is invalid.

It runs in a process of its own, since unusual texts make it crash or hang. In this case the process is restarted and
continues after the text in question.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

Task = tuple[str, tuple[Any, ...]]
"""Name and arguments, as in `judge_process.py`."""


@dataclass(frozen=True)
class Answer:
    """Answer of the judge: `text` or `error`; neither if it crashed or hung."""

    text: str | None = None
    error: str | None = None

    @property
    def crashed(self) -> bool:
        return self.text is None and self.error is None


class Judge:
    """Judge process, used as a context manager. `crashes`: number of lost processes."""

    def __init__(self, seconds: float = 20):
        self._seconds = seconds
        self._pending: list[Task] = []
        self._process = _start()
        self._read = b""
        self.crashes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> None:
        """Kill the process, as a crash would."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.stop()
        for stream in (self._process.stdin, self._process.stdout):
            # What was not read any more is lost with the process.
            with suppress(BrokenPipeError):
                assert stream is not None, "it is a pipe"
                stream.close()

    def submit(self, tasks: Sequence[Task]) -> None:
        """Submit tasks; `collect` waits for the answers."""
        assert not self._pending, "collect first"
        self._pending = list(tasks)
        self._send()

    def _send(self) -> None:
        assert self._process.stdin is not None, "it is a pipe"
        # A process that is gone shows when its answer is read.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(self._pending).encode() + b"\n")
            self._process.stdin.flush()

    def collect(self) -> list[Answer]:
        """Return the answer for each submitted task."""
        answers: list[Answer] = []
        while self._pending:
            line = self._line()
            self._pending.pop(0)
            if line:
                answers.append(Answer(**json.loads(line)))
                continue
            answers.append(Answer())
            self.crashes += 1
            self.close()
            self._process = _start()
            if self._pending:
                self._send()
        return answers

    def ask(self, *tasks: Task) -> list[Answer]:
        self.submit(tasks)
        return self.collect()

    def _line(self) -> bytes:
        """Return the next line; empty if the process has ended or exceeds the time limit."""
        assert self._process.stdout is not None, "it is a pipe"
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._read:
            ready = select.select([descriptor], [], [], self._seconds)[0]
            more = os.read(descriptor, 1 << 16) if ready else b""
            if not more:
                self._read = b""
                return b""
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return line


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "recompute.test.structure.judge_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )


def canonical(text: str) -> Task:
    return "canonical", (text,)


def processed(text: str) -> Task:
    return "processed", (text,)


def form(text: str, *, generic: bool, locations: bool) -> Task:
    return "form", (text, generic, locations)


def lowered(name: str) -> Task:
    return "lowered", (name,)
