"""A line on standard error, now and then, while something takes long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic

SECONDS = 10.0
"""What is done sooner says nothing."""


@contextmanager
def told(what: str) -> Generator[None, None, None]:
    """`what` and the seconds so far, every `SECONDS`."""
    done, start = threading.Event(), monotonic()

    def tell() -> None:
        while not done.wait(SECONDS):
            print(f"{what}: {monotonic() - start:.0f} s so far", file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
