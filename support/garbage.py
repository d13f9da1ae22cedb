"""Python's collector of cycles: off while a module is made or rewritten, since nearly all that is made lives, and with
higher thresholds while a tool runs.

Looking for garbage finds little, and with the objects of JAX in memory it takes as long as the work.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None, None, None]:
    """Disable the garbage collector within the context, and restore its state afterwards."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


THRESHOLDS = (1_000_000, 20, 20)


@contextmanager
def rare_collections() -> Generator[None]:
    """Collect cyclic garbage rarely inside; restore the thresholds afterwards.

    A module consists of cycles, few of which become garbage before the tool ends. With Python's default thresholds the
    collector traverses all of them repeatedly: a fifth of the time for 30,000 operations, and more for larger modules.
    """
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
