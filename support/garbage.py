"""Python's collector of cycles, while a module is made or rewritten: nearly all that is made lives.

Looking for garbage finds little, and with the objects of JAX in memory it takes as long as the work.
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
