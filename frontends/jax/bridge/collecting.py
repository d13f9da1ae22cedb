"""Python's collector of cycles, while a module is made: all that is made lives, so that looking for garbage finds none.

With the objects of JAX in memory, looking takes as long as the work.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None, None, None]:
    """Afterwards it is as it was."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
