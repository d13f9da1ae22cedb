"""How often Python looks for cyclic garbage while a tool runs."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

THRESHOLDS = (1_000_000, 20, 20)


@contextmanager
def rare_collections() -> Generator[None]:
    """Look for cyclic garbage rarely inside, and as often as before afterwards.

    A module is made of cycles, of which few become garbage before the tool is done. Python's own thresholds make it go
    through all of them again and again: a fifth of the time on 30,000 operations, and more on more.
    """
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
