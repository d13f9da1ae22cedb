"""Compile the inner loops with numba, if it is installed and the expected run time is long enough.

The functions marked with `kernel` are plain Python. `CompiledKernels` contains copies of them that numba compiles; each
copy calls the compiled copies of other kernels. numba caches the machine code between runs, next to the sources or, if
that directory is not writable, in the user's cache directory. With `RECOMPUTE_PLAN_PATH=plain` only the plain functions
run, as without numba. With `RECOMPUTE_PLAN_PATH=compiled` only the compiled functions run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from functools import cache, partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from ....support.progress import phase_shown

Function = TypeVar("Function", bound=Callable[..., Any])

COMPILE_SECONDS = 15.0
"""The CPU seconds that compiling all kernels takes, for messages and time limits."""
PHASE = f"compiling the search with numba (once per installation, about {COMPILE_SECONDS:.0f} s of CPU time)"
_KERNELS: list[Any] = []


def kernel(function: Function) -> Function:
    """Mark a function of the inner loops, so that `CompiledKernels` makes a compiled copy of it."""
    _KERNELS.append(function)
    return function


def chosen_path() -> str:
    """Return the value of `RECOMPUTE_PLAN_PATH`, `plain` or `compiled`; an empty string if it is not set."""
    return os.environ.get("RECOMPUTE_PLAN_PATH", "")


def is_available() -> bool:
    """Return whether numba may compile the inner loops."""
    return chosen_path() != "plain" and find_spec("numba") is not None


class CompiledKernels:
    """The compiled copies of all kernels. At the first call of a kernel, numba compiles it or loads it from the cache.

    Args:
        entries: The kernels that Python calls. All remaining kernels get no Python wrappers, because wrappers would
            take a tenth of the compile time.
    """

    def __init__(self, entries: Collection[Callable[..., Any]]):
        import numba  # pyright: ignore[reportMissingImports]

        dispatchers = {function: _compile_lazily(numba, function, function in entries) for function in _KERNELS}
        for dispatcher in dispatchers.values():
            scope = dispatcher.py_func.__globals__
            scope.update({name: dispatchers[value] for name, value in scope.items() if _is_kernel(value)})
        self._dispatchers: Mapping[Any, Any] = dispatchers

    def compiled_copy(self, function: Function) -> Function:
        """Return the compiled copy of a kernel."""
        return self._dispatchers[function]

    def is_cached(self, function: Callable[..., Any]) -> bool:
        """Return whether an earlier process has compiled the kernel."""
        return _is_cached(self._dispatchers[function])


def _is_kernel(value: Any) -> bool:
    return isinstance(value, FunctionType) and value in _KERNELS


def _compile_lazily(numba: Any, function: Any, is_entry: bool) -> Any:
    """Return a function that compiles a copy of the kernel at its first call.

    The loops allocate nothing, so arguments need no reference counting, which would take half of the time of a call.
    """
    # The copy has its own globals, in which the caller replaces kernels with compiled ones.
    copy = FunctionType(function.__code__, dict(function.__globals__), function.__name__)
    flags = {"nogil": True, "_nrt": False, "no_cfunc_wrapper": True, "no_cpython_wrapper": not is_entry}
    try:
        dispatcher: Any = numba.njit(cache=True, **flags)(copy)
    except RuntimeError:  # No directory for the cache is writable.
        dispatcher = numba.njit(**flags)(copy)
    # numba's cache key covers only the file of the function. The stamp also covers the files of its callees.
    if (cache_file := _cache_file(dispatcher)) is not None:
        cache_file._source_stamp = _stamp()
    dispatcher.compile = partial(_compile_unliteral, numba, dispatcher, dispatcher.compile)
    return dispatcher


def _compile_unliteral(numba: Any, dispatcher: Any, compile_for: Callable[[Any], Any], types: Any) -> Any:
    """Compile a kernel for the argument types, after replacing literal types with their general types. Otherwise numba
    would compile the kernel once for each literal value. The progress line shows the compilation, unless the kernel is
    only loaded from the cache."""
    with nullcontext() if _is_cached(dispatcher) else phase_shown(PHASE):
        return compile_for(tuple(map(numba.types.unliteral, types)) if isinstance(types, tuple) else types)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _cache_file(dispatcher: Any) -> Any:
    """Return numba's on-disk cache for a kernel; None if no directory for it is writable."""
    return getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)


def _is_cached(dispatcher: Any) -> bool:
    """Return whether an earlier process has compiled the kernel."""
    cache_file = _cache_file(dispatcher)
    return cache_file is not None and bool(cache_file._load_index())


@cache
def _stamp() -> str:
    """Return a hash of the sources of all kernels."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join([source.read_bytes() for source in sources])).hexdigest()
