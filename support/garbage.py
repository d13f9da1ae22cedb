"""Control of Python's cyclic garbage collector. The collector is slow and frees little memory while modules are built,
because nearly all objects live as long as the module. If JAX's objects are also in memory, a traversal of all objects
takes as long as the actual work.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None, None, None]:
    """Disable the garbage collector within the context, and restore its state afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


THRESHOLDS = (1_000_000, 20, 20)
"""Arguments of `gc.set_threshold` while a tool runs."""


@contextmanager
def rare_collections() -> Generator[None]:
    """Run the garbage collector rarely within the context, and restore its thresholds afterwards.

    A module consists of reference cycles, few of which become garbage before the tool ends. With Python's default
    thresholds, the collector traverses all cycles repeatedly, which takes a fifth of the run time for 30,000
    operations, and more for larger modules.
    """
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
