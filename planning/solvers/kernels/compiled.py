"""Whether the inner loops are compiled: `PATH` says which way they run.

numba's cache keeps the machine code between runs, beside the sources or, where those cannot be written, in the user's
cache directory. `RECOMPUTE_PLAN_PATH=plain` runs the same functions as Python, as where numba is not installed.
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
_STAMP = "" if _NUMBA is None else _stamp()


def compiled(function: Function) -> Function:
    """The function, compiled at its first call where numba is installed; as it is otherwise.

    Nothing is allocated in the loops, and arrays that are handed on need not be counted: that is half of a call.
    """
    if _NUMBA is None:
        return function
    try:
        made: Any = _NUMBA.njit(cache=True, nogil=True, _nrt=False)(function)
    except RuntimeError:  # No folder can be written for the cache.
        return _NUMBA.njit(nogil=True, _nrt=False)(function)
    # numba looks at the function's own file only: what it calls in the others counts, too.
    kept = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if kept is not None:
        kept._source_stamp = _STAMP
    return made
