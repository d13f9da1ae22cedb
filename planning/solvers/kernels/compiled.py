"""Whether the inner loops are compiled: `PATH` says which way they run.

numba's cache keeps the machine code between runs, beside the sources or, where those cannot be written, in the user's
cache directory. `RECOMPUTE_PLAN_PATH=plain` runs the same functions as Python, as where numba is not installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def _numba() -> Any:
    if os.environ.get("RECOMPUTE_PLAN_PATH") == "plain":
        return None
    try:
        import numba  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    return numba  # pyright: ignore[reportUnknownVariableType]


_NUMBA = _numba()
PATH = "plain" if _NUMBA is None else "compiled"


def compiled(function: Function) -> Function:
    """The function, compiled at its first call where numba is installed; as it is otherwise."""
    if _NUMBA is None:
        return function
    try:
        return _NUMBA.njit(cache=True, nogil=True, _nrt=False)(function)
    except RuntimeError:  # No folder can be written for the cache.
        return _NUMBA.njit(nogil=True, _nrt=False)(function)
