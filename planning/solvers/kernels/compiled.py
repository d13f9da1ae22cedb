"""Compile the inner loops with numba, if it is installed.

numba caches the machine code between runs, beside the sources or, if their folder is not writable, in the user's cache
directory. `RECOMPUTE_PLAN_PATH=plain` runs the same functions as plain Python, as without numba.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
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


def _stamp() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join([source.read_bytes() for source in sources])).hexdigest()


_NUMBA = _numba()
PATH = "plain" if _NUMBA is None else "compiled"
"""Whether the loops are `compiled` or `plain` Python."""
_STAMP = "" if _NUMBA is None else _stamp()


def compiled(function: Function) -> Function:
    """Compile the function at its first call with numba; without numba return it unchanged.

    The loops allocate nothing, so arguments need no reference counting, which would take half of the time of a call.
    """
    if _NUMBA is None:
        return function
    try:
        made: Any = _NUMBA.njit(cache=True, nogil=True, _nrt=False)(function)
    except RuntimeError:  # No folder for the cache is writable.
        return _NUMBA.njit(nogil=True, _nrt=False)(function)
    # numba's cache key covers only the file of the function; `_STAMP` covers the files of its callees too.
    cache_file = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = _STAMP
    return made
