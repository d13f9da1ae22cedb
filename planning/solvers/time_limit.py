"""The time limit of the search for plans if its inner loops run as plain Python, not compiled by numba."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from time import monotonic

SECONDS_AS_PYTHON = 60.0
SLOW = (
    "numba is not installed: the search for plans runs as plain Python and ends after {seconds:.0f} s with what it "
    "has; pip install numba"
)


def is_compiled() -> bool:
    """Whether numba compiles the inner loops of the search."""
    return find_spec("numba") is not None and os.environ.get("RECOMPUTE_PLAN_PATH") != "plain"


def limited(seconds: float = SECONDS_AS_PYTHON) -> Callable[[], bool]:
    """A predicate that says when to stop: never with numba, otherwise once `seconds` have passed since this call."""
    if is_compiled():
        return lambda: False
    end = monotonic() + seconds
    return lambda: monotonic() > end
