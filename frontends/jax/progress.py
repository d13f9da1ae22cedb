"""Progress lines on standard error while a rewrite takes long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic

SECONDS = 10.0
"""The interval between two lines."""


@contextmanager
def show_progress(task: str) -> Generator[None, None, None]:
    """Print the task and the seconds so far, every `SECONDS`."""
    finished, start = threading.Event(), monotonic()

    def print_lines() -> None:
        while not finished.wait(SECONDS):
            print(f"{task}: {monotonic() - start:.0f} s so far", file=sys.stderr, flush=True)

    printer = threading.Thread(target=print_lines, daemon=True)
    printer.start()
    try:
        yield
    finally:
        finished.set()
        printer.join()
